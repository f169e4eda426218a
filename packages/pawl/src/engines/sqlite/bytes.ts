/** The UTF-8 of a text, as it is stored. Half a surrogate pair has none and becomes U+FFFD. */
export function toBytes(text: string): Uint8Array {
  return Buffer.from(text, 'utf8');
}

export function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}
