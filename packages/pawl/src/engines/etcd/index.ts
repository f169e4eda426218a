import { type Clock, systemClock } from '../../clock.ts';
import { ClosedError, InvalidArgumentError } from '../../errors.ts';
import { EndingsFeed } from '../endings-feed.ts';
import type {
  CommitResult,
  ConditionalWrite,
  Engine,
  Entry,
  Finding,
  ReadQuery,
  ReadResult,
  Version,
} from '../engine.ts';
import { OwnInboxes } from '../own-inboxes.ts';
import { checkVersionFloor } from '../version-floor.ts';
import { commitBatch, MAX_GUARDS } from './commit.ts';
import { EtcdConnection } from './connection.ts';
import type { EtcdTls } from './endpoints.ts';
import { etcdFindings } from './findings.ts';
import { Floors } from './floor.ts';
import { etcdGuarantees } from './guarantees.ts';
import { Layout, prepareLayout } from './layout.ts';
import { MessageLeases } from './leases.ts';
import { listEntries, readSnapshot } from './reading.ts';
import { Sessions } from './sessions.ts';
import { Watches } from './watches.ts';

export type { EtcdTls } from './endpoints.ts';
export { etcdGuarantees } from './guarantees.ts';

/** How often it is looked whether the news of an ending was missed, in ms. */
const LOOK_PERIOD_MS = 5000;

export interface EtcdEngineOptions {
  /** Addresses of members, such as `http://10.0.0.1:2379`; `https` or `tls` for TLS. The next is turned to where one does not answer. */
  readonly endpoints: readonly string[];
  readonly tls?: EtcdTls;
  /** With `password`, where etcd asks for users. */
  readonly user?: string;
  readonly password?: string;
  /** What all keys begin with, `pawl` unless set: 1 to 64 letters, digits, `_`, `-`, `.` or `/`. */
  readonly prefix?: string;
  readonly clock?: Clock;
}

/**
 * An engine on etcd 3.4 or newer. Connects by `@grpc/grpc-js`, which is an optional peer.
 *
 * @throws InvalidArgumentError, StoreVersionError, StoreCorruptError, EngineUnavailableError
 */
export async function etcdEngine(options: EtcdEngineOptions): Promise<Engine> {
  const { endpoints, tls, user, password, prefix = 'pawl', clock = systemClock } = options;
  if (typeof prefix !== 'string' || !/^[\w./-]{1,64}$/.test(prefix)) {
    throw new InvalidArgumentError('prefix', '1 to 64 letters, digits, "_", "-", "." or "/"', prefix);
  }
  const connection = new EtcdConnection({ endpoints, tls, user, password }, clock);
  try {
    const layout = new Layout(prefix);
    await prepareLayout(connection, layout);
    return new EtcdEngine(connection, layout);
  } catch (error) {
    connection.close();
    throw error;
  }
}

class EtcdEngine implements Engine {
  readonly guarantees = etcdGuarantees;
  readonly maxGuards = MAX_GUARDS;
  readonly commitsAtOnce = 4;
  readonly #connection: EtcdConnection;
  readonly #layout: Layout;
  readonly #floors: Floors;
  readonly #sessions: Sessions;
  readonly #watches: Watches;
  readonly #ownInboxes = new OwnInboxes();
  readonly #messageLeases: MessageLeases;
  readonly #endings: EndingsFeed;
  #stopEndings: (() => void) | undefined;
  #ready: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(connection: EtcdConnection, layout: Layout) {
    this.#connection = connection;
    this.#layout = layout;
    this.#floors = new Floors(connection, layout);
    this.#sessions = new Sessions(connection, layout);
    this.#watches = new Watches(connection);
    this.#messageLeases = new MessageLeases(connection);
    this.#endings = new EndingsFeed({
      clock: connection.clock,
      periodMs: LOOK_PERIOD_MS,
      look: () => this.#sessions.ended(),
    });
  }

  async read(query: ReadQuery): Promise<ReadResult> {
    await this.#inForce();
    return readSnapshot(this.#connection, this.#layout, this.#floors, query);
  }

  async list(prefix: string, limit: number, after?: string): Promise<readonly Entry[]> {
    await this.#inForce();
    return listEntries(this.#connection, this.#layout, this.#floors, { prefix, limit, after });
  }

  async commit(batch: readonly ConditionalWrite[]): Promise<readonly CommitResult[]> {
    if (batch.length === 0) return [];
    await this.#inForce();
    return this.#ownInboxes.commit(batch, (rest) =>
      commitBatch(this.#connection, this.#layout, this.#floors, this.#messageLeases, rest),
    );
  }

  async openSession(id: string, ttlMs: number): Promise<boolean> {
    await this.#inForce();
    return this.#sessions.open(id, ttlMs);
  }

  async keepAlive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    await this.#inForce();
    return this.#sessions.keepAlive(ids);
  }

  async endSession(id: string): Promise<void> {
    await this.#inForce();
    await this.#sessions.end(id);
  }

  watchEndings(listener: (ids: readonly string[]) => void): () => void {
    this.#checkOpen();
    this.#stopEndings ??= this.#watches.watch({
      prefix: this.#layout.alive(''),
      only: 'deletes',
      onEvent: ({ key }) => this.#endings.hear([this.#layout.lastPart(key)]),
      onGap: () => this.#endings.lookNow(),
    }).stop;
    return this.#endings.watch(listener);
  }

  async forgetSessions(ids: readonly string[]): Promise<void> {
    await this.#inForce();
    await this.#sessions.forget(ids);
  }

  subscribe(inbox: string, listener: (message: string, version: Version) => void): () => void {
    this.#checkOpen();
    const { ready, stop } = this.#watches.watch({
      prefix: this.#layout.message(inbox, ''),
      only: 'puts',
      // The offset that its version has to its revision stands before the message.
      onEvent: ({ value, modRevision }) => {
        const space = value.indexOf(' ');
        listener(value.slice(space + 1), BigInt(value.slice(0, space)) + BigInt(modRevision));
      },
    });
    this.#ready = Promise.all([this.#ready, ready]);
    return this.#ownInboxes.subscribe(inbox, listener, stop);
  }

  async raiseVersion(version: Version): Promise<Version> {
    checkVersionFloor(version);
    await this.#inForce();
    return this.#floors.raise(version);
  }

  async check(): Promise<readonly Finding[]> {
    await this.#inForce();
    return etcdFindings(this.#connection);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#endings.close();
    this.#ownInboxes.close();
    this.#watches.close();
    this.#sessions.close();
    this.#connection.close();
  }

  /** What comes after a subscription must find it in force. */
  async #inForce(): Promise<void> {
    this.#checkOpen();
    await this.#ready;
  }

  #checkOpen(): void {
    if (this.#closed) throw new ClosedError('The etcd engine');
  }
}
