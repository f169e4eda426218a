/*
 * The wire format of protocol buffers (protobuf.dev, "Encoding"), as far as etcd's messages need it. Integers are JavaScript numbers:
 * revisions and the engine's lease ids stay below 2^53.
 */

const VARINT = 0;
const BYTES = 2;

/** Writes fields one after the other into one growing buffer. */
export class WireWriter {
  #buffer = Buffer.allocUnsafe(1024);
  #length = 0;

  /** An integer or a boolean; zero is the default and needs no field. */
  integer(field: number, value: number | boolean): void {
    const number = Number(value);
    if (number === 0) return;
    this.#varint(field * 8 + VARINT);
    this.#varint(number);
  }

  /** An integer that counts even where it is zero: a member of a `oneof`. */
  chosen(field: number, value: number): void {
    this.#varint(field * 8 + VARINT);
    this.#varint(value);
  }

  text(field: number, value: string): void {
    if (value.length === 0) return;
    this.#varint(field * 8 + BYTES);
    const size = Buffer.byteLength(value);
    this.#varint(size);
    this.#reserve(size);
    this.#length += this.#buffer.write(value, this.#length);
  }

  /** A message in a field of its own. */
  message(field: number, write: () => void): void {
    this.#varint(field * 8 + BYTES);
    // Its length stands before it and takes one byte, or more, which is known only afterwards.
    this.#reserve(1);
    const start = ++this.#length;
    write();
    const size = this.#length - start;
    const more = varintSize(size) - 1;
    this.#reserve(more);
    if (more > 0) this.#buffer.copyWithin(start + more, start, this.#length);
    this.#length = start - 1;
    this.#varint(size);
    this.#length += size;
  }

  finish(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #varint(value: number): void {
    this.#reserve(10);
    let rest = value;
    while (rest >= 0x80) {
      this.#buffer[this.#length++] = (rest % 0x80) + 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#buffer[this.#length++] = rest;
  }

  #reserve(size: number): void {
    if (this.#length + size <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + size));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

/** Reads the fields of one message. */
export class WireReader {
  readonly #buffer: Buffer;
  #at = 0;
  #type = VARINT;
  /** The number of the field that {@link next} went to. */
  field = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  /** Goes to the next field, which then has to be read or skipped. @returns false at the end. */
  next(): boolean {
    if (this.#at >= this.#buffer.length) return false;
    const tag = this.integer();
    this.field = Math.floor(tag / 8);
    this.#type = tag % 8;
    return true;
  }

  integer(): number {
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = this.#buffer[this.#at++];
      if (byte === undefined) throw new RangeError('An answer of etcd ends in the middle of a number.');
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 0x80;
    }
  }

  bytes(): Buffer {
    const size = this.integer();
    const start = this.#at;
    this.#at += size;
    if (this.#at > this.#buffer.length)
      throw new RangeError('An answer of etcd ends in the middle of a field.');
    return this.#buffer.subarray(start, this.#at);
  }

  text(): string {
    return this.bytes().toString();
  }

  message(): WireReader {
    return new WireReader(this.bytes());
  }

  skip(): void {
    if (this.#type === VARINT) this.integer();
    else if (this.#type === BYTES) this.bytes();
    else this.#at += this.#type === 1 ? 8 : 4;
  }
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size += 1;
  return size;
}
