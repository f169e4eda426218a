import { StoreCorruptError } from '../../errors.ts';
import type { Version } from '../engine.ts';
import { checkVersionFloor } from '../version-floor.ts';
import { wholeNumber } from '../whole-number.ts';
import { type Keeper, refused } from './keeper.ts';
import type { Layout } from './layout.ts';
import { CODE, dataOperation, type PartResult, setOperation } from './protocol.ts';

/** An offset, and the transaction since which it is in force. */
interface Period {
  readonly since: bigint;
  readonly offset: bigint;
}

/** The data of the floor's node before anybody raised the version. */
export const FIRST_FLOOR = Buffer.from(JSON.stringify({ offset: '0', past: [] }));

/**
 * How versions follow from transactions: the version of a transaction is its zxid and an offset. Whoever raises the version raises the
 * offset, for the transactions to come; those before it keep theirs.
 */
export class Floor {
  /** Of the floor's node: a write is done only while the floor is the one it reckoned with. */
  readonly dataVersion: number;
  readonly #current: Period;
  readonly #past: readonly Period[];

  /** @param part what was read of the floor's node. @throws StoreCorruptError, EngineUnavailableError */
  constructor(layout: Layout, part: PartResult | undefined) {
    if (part?.data === undefined || part.stat === undefined) {
      if (part !== undefined && part.code !== CODE.noNode) throw refused(part.code);
      throw new StoreCorruptError(`The ZooKeeper path "${layout.root}"`, 'its floor is missing');
    }
    try {
      const { offset, past } = JSON.parse(part.data.toString());
      this.dataVersion = part.stat.dataVersion;
      this.#current = { since: part.stat.modifiedZxid, offset: wholeNumber(offset) };
      this.#past = past.map((period: Record<'since' | 'offset', unknown>) => ({
        since: wholeNumber(period.since),
        offset: wholeNumber(period.offset),
      }));
    } catch (cause) {
      throw new StoreCorruptError(`The ZooKeeper path "${layout.root}"`, 'its floor cannot be read', {
        cause,
      });
    }
  }

  /** The version of a transaction that was done with this floor or one before it. */
  versionOf(zxid: bigint): Version {
    if (zxid > this.#current.since) return zxid + this.#current.offset;
    return zxid + (this.#past.findLast(({ since }) => zxid > since)?.offset ?? 0n);
  }

  /** The version of any transaction that comes after this floor. */
  get offset(): bigint {
    return this.#current.offset;
  }

  /** The node's data with another offset from its next transaction on. */
  raisedTo(offset: bigint): Buffer {
    const past = [...this.#past, this.#current].map((period) => ({
      since: period.since.toString(),
      offset: period.offset.toString(),
    }));
    return Buffer.from(JSON.stringify({ offset: offset.toString(), past }));
  }
}

/** Makes every later version higher than `version`. @returns the version that was current before. */
export async function raiseFloor(keeper: Keeper, layout: Layout, version: Version): Promise<Version> {
  checkVersionFloor(version);
  for (;;) {
    const { zxid, results } = await keeper.multiRead([dataOperation(layout.floor)]);
    const floor = new Floor(layout, results[0]);
    const before = zxid + floor.offset;
    if (before >= version) return before;
    const raise = setOperation(layout.floor, floor.raisedTo(version - zxid), floor.dataVersion);
    if ((await keeper.operate(raise, CODE.badVersion)) === CODE.ok) return before;
  }
}
