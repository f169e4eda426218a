import { EngineUnavailableError, TtlTooShortError } from '../../errors.ts';
import { codeOf, type EtcdConnection } from './connection.ts';
import { endOf, type Layout, rangeOf, txnMethod } from './layout.ts';
import { grantLease, leaseOf, NO_LEASE, Renewals, revokeMethod } from './leases.ts';
import type { Compare, Op, TxnAnswer } from './messages.ts';

/** `FAILED_PRECONDITION`: there is a lease of that id. */
const LEASE_EXISTS = 9;
/** So many operations go into one transaction; etcd takes 128. */
const OPERATIONS = 100;

/**
 * Sessions are leases of etcd. A key hangs on the lease and goes with it, in one step that etcd's log decides; another key stays, so that an
 * end is known of until the session was cleaned up after.
 */
export class Sessions {
  readonly #connection: EtcdConnection;
  readonly #layout: Layout;
  readonly #renewals: Renewals;

  constructor(connection: EtcdConnection, layout: Layout) {
    this.#connection = connection;
    this.#layout = layout;
    this.#renewals = new Renewals(connection);
  }

  async open(id: string, ttlMs: number): Promise<boolean> {
    const lease = leaseOf(id);
    await this.#grant(lease, ttlMs);
    const [alive, opened] = [this.#layout.alive(id), this.#layout.opened(id)];
    const answer = await this.#call(
      [{ key: opened, modRevision: 0 }],
      [{ put: { key: alive, value: '', lease } }, { put: { key: opened, value: String(ttlMs) } }],
      [{ range: { key: alive, keysOnly: true } }],
    );
    if (answer.succeeded) return true;
    if (rangeOf(answer, 0).kvs.length > 0) return (await this.keepAlive([id])).has(id);
    await this.#revoke(lease);
    return false;
  }

  async keepAlive(ids: readonly string[]): Promise<Set<string>> {
    const renewed = await Promise.all(ids.map((id) => this.#renewals.renew(leaseOf(id))));
    const alive = new Set<string>();
    const candidates = ids.filter((_, i) => renewed[i]);
    // Whoever renewed may have been a leader that was already replaced; a read is answered by the current one only.
    for (let i = 0; i < candidates.length; i += OPERATIONS) {
      const some = candidates.slice(i, i + OPERATIONS);
      const answer = await this.#call(
        [],
        some.map((id) => ({ range: { key: this.#layout.alive(id), keysOnly: true } })),
        [],
      );
      for (const [n, id] of some.entries()) if (rangeOf(answer, n).kvs.length > 0) alive.add(id);
    }
    return alive;
  }

  async end(id: string): Promise<void> {
    await this.#revoke(leaseOf(id));
  }

  /** Those that have ended and were not forgotten. */
  async ended(): Promise<string[]> {
    const [alive, opened] = [this.#layout.alive(''), this.#layout.opened('')];
    const answer = await this.#call(
      [],
      [
        { range: { key: opened, end: endOf(opened), keysOnly: true } },
        { range: { key: alive, end: endOf(alive), keysOnly: true } },
      ],
      [],
    );
    const living = new Set(rangeOf(answer, 1).kvs.map(({ key }) => this.#layout.lastPart(key)));
    return rangeOf(answer, 0)
      .kvs.map(({ key }) => this.#layout.lastPart(key))
      .filter((id) => !living.has(id));
  }

  async forget(ids: readonly string[]): Promise<void> {
    // Only of sessions that have ended, so no mark of a living one goes.
    await Promise.all(
      ids.map((id) =>
        this.#call(
          [{ key: this.#layout.alive(id), modRevision: 0 }],
          [{ remove: this.#layout.opened(id) }],
          [],
        ),
      ),
    );
  }

  close(): void {
    this.#renewals.close();
  }

  async #grant(lease: number, ttlMs: number): Promise<void> {
    try {
      const givenMs = await grantLease(this.#connection, lease, ttlMs);
      if (givenMs < ttlMs + 1000) return;
      // The members' election timeout rules out shorter leases.
      await this.#revoke(lease);
      throw new TtlTooShortError('ttlMs', ttlMs, givenMs, 'etcd');
    } catch (error) {
      if (codeOf(error) !== LEASE_EXISTS) throw error;
    }
  }

  async #revoke(lease: number): Promise<void> {
    try {
      await this.#connection.call(revokeMethod, lease, true);
    } catch (error) {
      if (!(error instanceof EngineUnavailableError) || codeOf(error) !== NO_LEASE) throw error;
    }
  }

  /** May be repeated: to put, to remove or to look once more changes nothing. */
  #call(compare: readonly Compare[], success: readonly Op[], failure: readonly Op[]): Promise<TxnAnswer> {
    return this.#connection.call(txnMethod, { compare, success, failure }, true);
  }
}
