import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { TransientMap } from '../../transient-map.ts';
import type { Entry, ReadQuery, ReadResult, Version } from '../engine.ts';
import { toBytes, toText } from './bytes.ts';

/** No byte of UTF-8 is this high, so every key is below it. */
const ABOVE_ALL = Uint8Array.of(0xff);

/** So many versions are remembered; then it starts anew. */
const KNOWN_LIMIT = 10_000;

/** A text as its UTF-8: to have SQLite take it as it is costs less than to make a buffer of it first. */
const BYTES = 'CAST(? AS BLOB)';

/** The stored values. Nothing here opens a transaction. */
export class Entries {
  readonly #get: StatementSync;
  readonly #version: StatementSync;
  readonly #range: StatementSync;
  readonly #put: StatementSync;
  readonly #delete: StatementSync;
  /** The versions of keys that were last asked for or written; `null` for those that are absent. */
  readonly #known = new TransientMap<string, Version | null>();

  constructor(db: DatabaseSync) {
    this.#get = db.prepare(`SELECT value, version FROM entry WHERE key = ${BYTES}`);
    this.#version = db.prepare(`SELECT version FROM entry WHERE key = ${BYTES}`);
    this.#range = db.prepare(
      'SELECT key, value, version FROM entry WHERE key >= ? AND key < ? ORDER BY key LIMIT ?',
    );
    this.#put = db.prepare(
      `INSERT INTO entry (key, value, version) VALUES (${BYTES}, ${BYTES}, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version`,
    );
    this.#delete = db.prepare(`DELETE FROM entry WHERE key = ${BYTES}`);
    // A version may be beyond what a number holds exactly.
    for (const statement of [this.#get, this.#version, this.#range]) statement.setReadBigInts(true);
  }

  read({ keys, ranges }: ReadQuery): ReadResult {
    const entries = new Map<string, Entry>();
    for (const key of keys) {
      const row = this.#get.get(key) as { value: Uint8Array; version: bigint } | undefined;
      if (row !== undefined)
        entries.set(key, {
          key,
          value: toText(row.value),
          version: row.version,
        });
    }
    return {
      entries,
      ranges: ranges.map(({ prefix, limit }) => this.list(prefix, limit)),
    };
  }

  list(prefix: string, limit: number, after?: string): readonly Entry[] {
    const first = toBytes(prefix);
    const next = after === undefined ? first : toBytes(`${after}\0`);
    const from = Buffer.compare(next, first) > 0 ? next : first;
    const rows = this.#range.all(from, endOf(first), limit) as {
      key: Uint8Array;
      value: Uint8Array;
      version: bigint;
    }[];
    return rows.map(({ key, value, version }) => ({
      key: toText(key),
      value: toText(value),
      version,
    }));
  }

  /** The version that `key` is at, `null` where it is absent. */
  version(key: string): Version | null {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const row = this.#version.get(key) as { version: bigint } | undefined;
    const version = row?.version ?? null;
    this.#remember(key, version);
    return version;
  }

  put(key: string, value: string, version: Version): void {
    // Where a statement gives no row, `get` runs it like `run`, but makes no object of what changed.
    this.#put.get(key, value, version);
    this.#remember(key, version);
  }

  delete(key: string): void {
    this.#delete.get(key);
    this.#remember(key, null);
  }

  /** Forgets what is known of versions: others have written, or what was written was undone. */
  forget(): void {
    this.#known.clear();
  }

  #remember(key: string, version: Version | null): void {
    if (this.#known.size >= KNOWN_LIMIT) this.#known.clear();
    this.#known.set(key, version);
  }
}

/** The first bytes after all that start with `prefix`. */
function endOf(prefix: Uint8Array): Uint8Array {
  const last = prefix.at(-1);
  if (last === undefined) return ABOVE_ALL;
  const end = Uint8Array.from(prefix);
  end[end.length - 1] = last + 1;
  return end;
}
