import { Interpreter } from "../../../node_modules/@ethereumjs/evm/dist/esm/interpreter.js"

// The EVM analyzes a contract's code at each call, which costs more than executing it. The result depends only on the
// code, of which a chain and its copies share one array.

type Parts = ReturnType<Interpreter["_getValidJumpDestinations"]>

const known = new WeakMap<Uint8Array, Parts>()
const takeApart = Interpreter.prototype._getValidJumpDestinations

Interpreter.prototype._getValidJumpDestinations = function (code) {
  const parts = known.get(code) ?? takeApart.call(this, code)
  known.set(code, parts)
  return parts
}
