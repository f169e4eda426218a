import { StoreCorruptError } from '../../errors.ts';
import type { Version } from '../engine.ts';
import { wholeNumber } from '../whole-number.ts';
import type { EtcdConnection } from './connection.ts';
import { type Layout, rangeOf, txnMethod } from './layout.ts';

interface Stored {
  readonly value: string;
  readonly modRevision: number;
}

/**
 * How revisions of the store become versions. They are the same, unless the version was raised after an old backup was restored: then
 * an offset is added from that revision on.
 */
export class Floor {
  /** When the floor was last written; what a commit has to be guarded by. */
  readonly writtenAt: number;
  /** What is added to the revisions of what is written now. */
  readonly offset: bigint;
  readonly #past: readonly PastOffset[];

  constructor(stored: Stored | undefined) {
    this.writtenAt = stored?.modRevision ?? 0;
    const { offset, past } = stored === undefined ? { offset: 0n, past: [] } : parseFloor(stored.value);
    this.offset = offset;
    this.#past = past;
  }

  versionAt(revision: number): Version {
    if (revision >= this.writtenAt) return BigInt(revision) + this.offset;
    const { offset } = this.#past.findLast(({ since }) => revision >= since) ?? { offset: 0n };
    return BigInt(revision) + offset;
  }

  revisionOf(version: Version): number {
    const revision = Number(version - this.offset);
    if (revision >= this.writtenAt) return revision;
    const past = this.#past.findLast(({ since, offset }) => version - offset >= BigInt(since));
    return Number(version - (past?.offset ?? 0n));
  }

  /** The floor to store so that what is written after `revision` has a version higher than `least`. */
  raised(least: Version, revision: number): string {
    const past = [...this.#past, { since: this.writtenAt, offset: this.offset }];
    return JSON.stringify({
      offset: String(least - BigInt(revision)),
      past: past.map(({ since, offset }) => ({ since, offset: String(offset) })),
    });
  }
}

interface PastOffset {
  readonly since: number;
  readonly offset: bigint;
}

function parseFloor(value: string): { offset: bigint; past: PastOffset[] } {
  try {
    const { offset, past } = JSON.parse(value);
    return {
      offset: wholeNumber(offset),
      past: past.map((each: { since: unknown; offset: unknown }) => ({
        since: Number(wholeNumber(String(each.since))),
        offset: wholeNumber(each.offset),
      })),
    };
  } catch (error) {
    throw new StoreCorruptError('The token floor in etcd', 'it is no JSON of offsets', { cause: error });
  }
}

/** The floor as it is stored, remembered. Reads tell of it, and commits are guarded by it, so nothing is done under an outdated one. */
export class Floors {
  readonly #connection: EtcdConnection;
  readonly #layout: Layout;
  #current = new Floor(undefined);

  constructor(connection: EtcdConnection, layout: Layout) {
    this.#connection = connection;
    this.#layout = layout;
  }

  get current(): Floor {
    return this.#current;
  }

  /** Takes over what a read found. */
  adopt(stored: Stored | undefined): Floor {
    const writtenAt = stored?.modRevision ?? 0;
    if (writtenAt !== this.#current.writtenAt) this.#current = new Floor(stored);
    return this.#current;
  }

  /** Reads the floor. @returns the store's present revision. */
  async reload(): Promise<number> {
    const success = [{ range: { key: this.#layout.floor } }];
    const answer = await this.#connection.call(txnMethod, { compare: [], success, failure: [] }, true);
    this.adopt(rangeOf(answer, 0).kvs[0]);
    return answer.revision;
  }

  /** Makes every later version higher than `least`. @returns the version before. */
  async raise(least: Version): Promise<Version> {
    for (;;) {
      const revision = await this.reload();
      const floor = this.#current;
      const before = floor.versionAt(revision);
      if (before >= least) return before;
      const put = { key: this.#layout.floor, value: floor.raised(least, revision) };
      const compare = [{ key: this.#layout.floor, modRevision: floor.writtenAt }];
      const txn = { compare, success: [{ put }], failure: [] };
      const { succeeded } = await this.#connection.call(txnMethod, txn, true);
      await this.reload();
      if (succeeded) return before;
    }
  }
}
