// Imported first: the replacements must be in place before the service is loaded.
import "./clock.ts"
import "./chance.ts"
import "./database.ts"
import "./line.ts"
import "./heap.ts"
