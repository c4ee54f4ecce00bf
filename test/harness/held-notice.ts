/**
 * Preload this into an API process: after a signal to stop, it announces that for as long as the test takes to look,
 * which then sends SIGUSR2, instead of for a time that a busy machine may need for the first look.
 */
const { sleep } = Bun
const looked = new Promise<void>((resolve) => process.once("SIGUSR2", () => resolve()))
Bun.sleep = (time) => (Number(time) >= 1_000 ? looked : sleep(time))
