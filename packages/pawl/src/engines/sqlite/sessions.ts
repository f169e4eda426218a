import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Transaction } from './transactions.ts';

/**
 * The grain of the machine's time since boot. An expiry is put off by it, so that no session ends before its TTL is
 * over by the finer clock of its client.
 */
const GRAIN_MS = 10;

/** So many sessions are remembered; then it starts anew. */
const KNOWN_LIMIT = 10_000;

/**
 * The liveness of sessions. An end is decided and written down in one transaction, before anybody is told of it, so
 * that nothing can undo it: not even a restart of the machine, after which time counts from zero again.
 */
export class Sessions {
  readonly #get: StatementSync;
  readonly #open: StatementSync;
  readonly #renew: StatementSync;
  readonly #end: StatementSync;
  readonly #endDue: StatementSync;
  readonly #anyDue: StatementSync;
  readonly #ended: StatementSync;
  readonly #forget: StatementSync;
  readonly #restart: StatementSync;
  /** When sessions expire that were found to be alive and not written since, by this process or another. */
  readonly #expiries = new Map<string, number>();

  constructor(db: DatabaseSync) {
    this.#get = db.prepare('SELECT expires_ms AS expiresMs FROM session WHERE id = ?');
    this.#open = db.prepare(
      'INSERT INTO session (id, ttl_ms, expires_ms) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET ttl_ms = excluded.ttl_ms, expires_ms = excluded.expires_ms',
    );
    this.#renew = db.prepare('UPDATE session SET expires_ms = ? + ttl_ms WHERE id = ?');
    this.#end = db.prepare('UPDATE session SET expires_ms = NULL WHERE id = ? AND expires_ms IS NOT NULL');
    this.#endDue = db.prepare('UPDATE session SET expires_ms = NULL WHERE expires_ms <= ? RETURNING id');
    this.#anyDue = db.prepare('SELECT 1 FROM session WHERE expires_ms <= ? LIMIT 1');
    this.#ended = db.prepare('SELECT id FROM session WHERE expires_ms IS NULL');
    this.#forget = db.prepare('DELETE FROM session WHERE id = ? AND expires_ms IS NULL');
    this.#restart = db.prepare('UPDATE session SET expires_ms = ? + ttl_ms WHERE expires_ms IS NOT NULL');
  }

  /** Opens a session or keeps it alive. @returns false where one of that id has ended. */
  open(transaction: Transaction, id: string, ttlMs: number): boolean {
    if (this.#state(transaction, id) === 'ended') return false;
    this.#expiries.delete(id);
    this.#open.run(id, ttlMs, transaction.nowMs + ttlMs + GRAIN_MS);
    return true;
  }

  /** Whether the session is alive. If its time is up, this is its end. */
  isAlive(transaction: Transaction, id: string): boolean {
    if (transaction.alive.has(id)) return true;
    if (this.#state(transaction, id) !== 'alive') return false;
    transaction.alive.add(id);
    return true;
  }

  keepAlive(transaction: Transaction, ids: readonly string[]): ReadonlySet<string> {
    const alive = new Set<string>();
    for (const id of ids) {
      if (!this.isAlive(transaction, id)) continue;
      this.#expiries.delete(id);
      this.#renew.run(transaction.nowMs + GRAIN_MS, id);
      alive.add(id);
    }
    return alive;
  }

  end(transaction: Transaction, id: string): void {
    transaction.alive.delete(id);
    this.#expiries.delete(id);
    if (this.#end.run(id).changes > 0) transaction.ended.push(id);
  }

  /** Ends every session whose time is up. */
  endDue(transaction: Transaction): void {
    this.#expiries.clear();
    for (const { id } of this.#endDue.all(transaction.nowMs) as {
      id: string;
    }[])
      transaction.ended.push(id);
  }

  /** Whether there is anything to do for {@link endDue}; only reads. */
  anyDue(nowMs: number): boolean {
    return this.#anyDue.get(nowMs) !== undefined;
  }

  /** All that have ended and were not yet forgotten. */
  ended(): string[] {
    return (this.#ended.all() as { id: string }[]).map(({ id }) => id);
  }

  forget(ids: readonly string[]): void {
    for (const id of ids) this.#forget.run(id);
  }

  /** After a restart of the machine, during which no time was counted: gives every live session its whole TTL. */
  restart(nowMs: number): void {
    this.#expiries.clear();
    this.#restart.run(nowMs + GRAIN_MS);
  }

  /** Forgets what is remembered: others have written, or what was written was undone. */
  doubt(): void {
    this.#expiries.clear();
  }

  #state(transaction: Transaction, id: string): 'alive' | 'ended' | 'unknown' {
    const known = this.#expiries.get(id);
    if (known !== undefined && transaction.nowMs < known) return 'alive';
    const row = this.#get.get(id) as { expiresMs: number | null } | undefined;
    if (row === undefined) return 'unknown';
    if (row.expiresMs === null) return 'ended';
    if (transaction.nowMs < row.expiresMs) {
      if (this.#expiries.size >= KNOWN_LIMIT) this.#expiries.clear();
      this.#expiries.set(id, row.expiresMs);
      return 'alive';
    }
    this.end(transaction, id);
    return 'ended';
  }
}
