/** Returns a number and what it counts, in the form that goes with it: `1 chip was`, `2 chips were`. */
export function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}
