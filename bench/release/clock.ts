/** @returns milliseconds of the system's monotonic clock, which all processes of a machine share */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
