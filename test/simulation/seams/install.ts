// Imported before anything else: what it replaces must be replaced before the service is loaded.
import "./clock.ts"
import "./chance.ts"
import "./database.ts"
import "./line.ts"
import "./heap.ts"
