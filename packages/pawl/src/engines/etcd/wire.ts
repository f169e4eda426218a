/*
 * The wire format of protocol buffers (protobuf.dev, "Encoding"), as far as etcd's messages need it. Integers are JavaScript numbers:
 * revisions and the engine's lease ids stay below 2^53.
 */

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;
/** So many bytes a number of 64 bits takes at most. */
const LONGEST_VARINT = 10;

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

/** Reads the fields of one message. Throws a `RangeError` where the bytes make no sense. */
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
    const tag = this.#varint();
    this.field = Math.floor(tag / 8);
    this.#type = tag % 8;
    if (this.field < 1 || this.field >= 2 ** 29)
      throw new RangeError(`An answer of etcd has a field ${this.field}.`);
    return true;
  }

  integer(): number {
    this.#expect(VARINT);
    const start = this.#at;
    const value = this.#varint();
    return Number.isSafeInteger(value) ? value : this.#signed(start);
  }

  /** Whether a boolean is set, or a number, however large, is not 0. */
  boolean(): boolean {
    this.#expect(VARINT);
    return this.#varint() !== 0;
  }

  bytes(): Buffer {
    this.#expect(BYTES);
    const size = this.#varint();
    const start = this.#at;
    this.#advance(size);
    return this.#buffer.subarray(start, this.#at);
  }

  text(): string {
    return this.bytes().toString();
  }

  message(): WireReader {
    return new WireReader(this.bytes());
  }

  skip(): void {
    if (this.#type === VARINT) this.#varint();
    else if (this.#type === BYTES) this.bytes();
    else if (this.#type === FIXED64) this.#advance(8);
    else if (this.#type === FIXED32) this.#advance(4);
    else throw new RangeError(`An answer of etcd has a field of the unknown type ${this.#type}.`);
  }

  #expect(type: number): void {
    if (this.#type === type) return;
    throw new RangeError(`An answer of etcd has field ${this.field} of type ${this.#type}, not ${type}.`);
  }

  #advance(size: number): void {
    this.#at += size;
    if (!(this.#at <= this.#buffer.length))
      throw new RangeError('An answer of etcd ends in the middle of a field.');
  }

  /** Not exact beyond 2^53. */
  #varint(): number {
    let value = 0;
    let factor = 1;
    for (let left = LONGEST_VARINT; left > 0; left -= 1) {
      const byte = this.#buffer[this.#at++];
      if (byte === undefined) throw new RangeError('An answer of etcd ends in the middle of a number.');
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 0x80;
    }
    throw new RangeError('An answer of etcd has a number that does not end.');
  }

  /** The number that began at `start`, which is large or negative. */
  #signed(start: number): number {
    let bits = 0n;
    for (let i = this.#at - 1; i >= start; i -= 1) bits = bits * 128n + BigInt((this.#buffer[i] ?? 0) & 0x7f);
    const value = Number(BigInt.asIntN(64, bits));
    if (Number.isSafeInteger(value)) return value;
    throw new RangeError('An answer of etcd has a number beyond 2^53.');
  }
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size += 1;
  return size;
}
