import { ClosedError } from '../../errors.ts';
import type {
  CommitResult,
  ConditionalWrite,
  Engine,
  EngineGuarantees,
  Entry,
  Finding,
  ReadQuery,
  ReadResult,
  Version,
} from '../engine.ts';
import { OwnInboxes } from '../own-inboxes.ts';
import { Commits } from './commits.ts';
import { Endings } from './endings.ts';
import { zookeeperFindings } from './findings.ts';
import { raiseFloor } from './floor.ts';
import { Folders } from './folders.ts';
import { guaranteesFor } from './guarantees.ts';
import { Guards } from './guards.ts';
import { Inboxes } from './inboxes.ts';
import { Keeper } from './keeper.ts';
import { Layout } from './layout.ts';
import { type CheckedOptions, checkOptions, type ZooKeeperEngineOptions } from './options.ts';
import { Reading } from './reading.ts';
import { Sessions } from './sessions.ts';

export { zookeeperGuarantees } from './guarantees.ts';
export type { ZooKeeperEngineOptions } from './options.ts';
export type { Acl } from './protocol.ts';

/**
 * An engine on an ensemble of ZooKeeper 3.6 or newer. Speaks its protocol by itself: whether a session is alive must be vouched for by its
 * own client only, so nothing else may ping for it.
 *
 * @throws InvalidArgumentError
 */
export function zookeeperEngine(options: ZooKeeperEngineOptions): Engine {
  return new ZooKeeperEngine(checkOptions(options));
}

class ZooKeeperEngine implements Engine {
  readonly guarantees: EngineGuarantees;
  readonly #keeper: Keeper;
  readonly #layout: Layout;
  readonly #reading: Reading;
  readonly #commits: Commits;
  readonly #sessions: Sessions;
  readonly #endings: Endings;
  readonly #inboxes: Inboxes;
  readonly #ownInboxes = new OwnInboxes();
  #closed = false;

  constructor({ access, clock, root, acl, minTtlMs, maxSessions }: CheckedOptions) {
    this.guarantees = guaranteesFor(minTtlMs);
    const keeper = new Keeper(access, clock);
    const layout = new Layout(root, acl);
    const guards = new Guards();
    const prepared = () => layout.prepare(keeper);
    const commits = new Commits({ keeper, layout, guards, folders: new Folders(keeper, layout) });
    const onFloor: (floor: Commits['floor']) => void = (floor) => {
      commits.floor = floor;
    };
    this.#keeper = keeper;
    this.#layout = layout;
    this.#commits = commits;
    this.#reading = new Reading({ keeper, layout, guards, onFloor });
    this.#sessions = new Sessions({ keeper, layout, maxSessions, engine: this.guarantees.engine });
    this.#endings = new Endings(keeper, layout, clock, prepared);
    this.#inboxes = new Inboxes(keeper, layout, clock, prepared);
  }

  async read(query: ReadQuery): Promise<ReadResult> {
    await this.#ready();
    return this.#reading.read(query);
  }

  async list(prefix: string, limit: number, after?: string): Promise<readonly Entry[]> {
    await this.#ready();
    return this.#reading.list({ prefix, limit, after });
  }

  async commit(batch: readonly ConditionalWrite[]): Promise<readonly CommitResult[]> {
    await this.#ready();
    return this.#ownInboxes.commit(batch, (rest) => this.#commits.commit(rest));
  }

  async openSession(id: string, ttlMs: number): Promise<boolean> {
    await this.#ready();
    return this.#sessions.open(id, ttlMs);
  }

  async keepAlive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    await this.#ready();
    return this.#sessions.keepAlive(ids);
  }

  async endSession(id: string): Promise<void> {
    await this.#ready();
    await this.#sessions.end(id);
  }

  watchEndings(listener: (ids: readonly string[]) => void): () => void {
    this.#checkOpen();
    return this.#endings.watch(listener);
  }

  async forgetSessions(ids: readonly string[]): Promise<void> {
    await this.#ready();
    await this.#sessions.forget(ids);
  }

  subscribe(inbox: string, listener: (message: string, version: Version) => void): () => void {
    this.#checkOpen();
    return this.#ownInboxes.subscribe(inbox, listener, this.#inboxes.subscribe(inbox, listener));
  }

  async raiseVersion(version: Version): Promise<Version> {
    await this.#ready();
    return raiseFloor(this.#keeper, this.#layout, version);
  }

  async check(): Promise<readonly Finding[]> {
    await this.#ready();
    return zookeeperFindings(this.#keeper, this.guarantees.minTtlMs);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#endings.close();
    this.#ownInboxes.close();
    this.#inboxes.close();
    this.#sessions.close();
    await this.#keeper.close();
  }

  async #ready(): Promise<void> {
    this.#checkOpen();
    await this.#layout.prepare(this.#keeper);
    // What comes after a subscription must find it in force.
    await this.#inboxes.ready;
  }

  #checkOpen(): void {
    if (this.#closed) throw new ClosedError('The ZooKeeper engine');
  }
}
