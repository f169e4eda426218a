/**
 * Reads a whole number that an engine stored as text.
 *
 * @throws SyntaxError where it is anything else, which `BigInt` alone would often take for a number.
 */
export function wholeNumber(text: unknown): bigint {
  if (typeof text === 'string' && /^\d{1,30}$/.test(text)) return BigInt(text);
  throw new SyntaxError(`${JSON.stringify(text) ?? String(text)} is no whole number in a string`);
}
