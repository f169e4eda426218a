/** Writes records as ZooKeeper encodes them ("jute"): big-endian, texts and buffers behind their length. */
export class JuteWriter {
  #bytes = Buffer.allocUnsafe(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  int(value: number): this {
    this.#need(4);
    this.#length = this.#bytes.writeInt32BE(value, this.#length);
    return this;
  }

  long(value: bigint): this {
    this.#need(8);
    this.#length = this.#bytes.writeBigInt64BE(value, this.#length);
    return this;
  }

  bool(value: boolean): this {
    this.#need(1);
    this.#length = this.#bytes.writeUInt8(value ? 1 : 0, this.#length);
    return this;
  }

  text(value: string): this {
    const bytes = Buffer.byteLength(value);
    this.int(bytes);
    this.#need(bytes);
    this.#length += this.#bytes.write(value, this.#length);
    return this;
  }

  buffer(value: Uint8Array): this {
    return this.int(value.length).raw(value);
  }

  /** Appends bytes that are encoded already. */
  raw(value: Uint8Array): this {
    this.#need(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  /** What was written; valid until the next write. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #need(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + more));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

/** Reads what {@link JuteWriter} writes. Throws a `RangeError` where the bytes end too early. */
export class JuteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** How many bytes are left. */
  get left(): number {
    return this.#bytes.length - this.#at;
  }

  int(): number {
    this.#at += 4;
    return this.#bytes.readInt32BE(this.#at - 4);
  }

  long(): bigint {
    this.#at += 8;
    return this.#bytes.readBigInt64BE(this.#at - 8);
  }

  bool(): boolean {
    this.#at += 1;
    return this.#bytes.readUInt8(this.#at - 1) !== 0;
  }

  text(): string {
    return this.buffer().toString();
  }

  /** A part of the bytes, not a copy. A missing buffer counts as empty. */
  buffer(): Buffer {
    const length = this.#count();
    if (length === 0) return Buffer.alloc(0);
    if (length > this.left)
      throw new RangeError(`a buffer of ${length} bytes, but only ${this.left} are left`);
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  texts(): string[] {
    const count = this.#count();
    const texts: string[] = [];
    for (let i = 0; i < count; i += 1) texts.push(this.text());
    return texts;
  }

  /** How much follows; -1 stands for a value that is missing. */
  #count(): number {
    const count = this.int();
    if (count < -1) throw new RangeError(`a length of ${count}`);
    return Math.max(count, 0);
  }
}
