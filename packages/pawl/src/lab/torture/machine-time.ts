/** The same clock in all processes of one machine, in ms. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
