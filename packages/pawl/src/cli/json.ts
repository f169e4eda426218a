/** A document as JSON; tokens become decimal strings, since JSON's numbers are too small for them. */
export function toJson(value: unknown): string {
  const plain = (_key: string, each: unknown) => (typeof each === 'bigint' ? each.toString() : each);
  return `${JSON.stringify(value, plain, 2)}\n`;
}
