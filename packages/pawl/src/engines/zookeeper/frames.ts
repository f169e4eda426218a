/** The longest message that is accepted, in bytes: what is longer is no message of ZooKeeper's. */
const LONGEST = 2 ** 29;

/** A message as it goes over the wire: its length, then its parts. */
export function frame(head: Uint8Array, body: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(4 + head.length + body.length);
  bytes.writeInt32BE(head.length + body.length, 0);
  bytes.set(head, 4);
  bytes.set(body, 4 + head.length);
  return bytes;
}

/** Cuts a stream of bytes into messages. */
export class Frames {
  readonly #onFrame: (payload: Buffer) => void;
  #chunks: Buffer[] = [];
  #length = 0;
  /** The length of the message that is under way, or -1 while that is not known. */
  #wanted = -1;

  constructor(onFrame: (payload: Buffer) => void) {
    this.#onFrame = onFrame;
  }

  /** @throws RangeError where a message has an impossible length. */
  take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    for (;;) {
      if (this.#wanted < 0) {
        if (this.#length < 4) return;
        this.#wanted = this.#cut(4).readInt32BE(0);
        if (this.#wanted < 0 || this.#wanted > LONGEST)
          throw new RangeError(`a message of ${this.#wanted} bytes`);
      }
      if (this.#length < this.#wanted) return;
      const payload = this.#cut(this.#wanted);
      this.#wanted = -1;
      this.#onFrame(payload);
    }
  }

  #cut(length: number): Buffer {
    const all =
      this.#chunks.length === 1 ? (this.#chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#chunks);
    this.#chunks = length < all.length ? [all.subarray(length)] : [];
    this.#length = all.length - length;
    return all.subarray(0, length);
  }
}
