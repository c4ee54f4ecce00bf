import { Interpreter } from "../../../node_modules/@ethereumjs/evm/dist/esm/interpreter.js"

// The EVM takes a contract's code apart in each call, which costs more than to run it. What it finds follows from the
// code, of which a chain and its copies have one array.

type Parts = ReturnType<Interpreter["_getValidJumpDestinations"]>

const known = new WeakMap<Uint8Array, Parts>()
const takeApart = Interpreter.prototype._getValidJumpDestinations

Interpreter.prototype._getValidJumpDestinations = function (code) {
  const parts = known.get(code) ?? takeApart.call(this, code)
  known.set(code, parts)
  return parts
}
