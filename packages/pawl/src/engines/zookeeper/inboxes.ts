import type { Clock, Timer } from '../../clock.ts';
import type { Version } from '../engine.ts';
import { Floor } from './floor.ts';
import { type Keeper, refused } from './keeper.ts';
import type { Layout } from './layout.ts';
import {
  ANY_VERSION,
  CODE,
  childrenOperation,
  dataOperation,
  deleteOperation,
  EVENT,
  NODE,
  setOperation,
} from './protocol.ts';

type Listener = (message: string, version: Version) => void;

/** How often messages are swept up that nobody listens for any more, in ms. */
const SWEEP_PERIOD_MS = 30_000;
const SWEEP_PAGE = 500;
/** There while somebody listens: keeps ZooKeeper from removing the inbox while it is empty. */
const OWNER = 'owner';
const MESSAGE = 'm-';
const EMPTY = Buffer.alloc(0);

/** Inboxes, each a node with a child for each message that was not taken yet. */
export class Inboxes {
  readonly #keeper: Keeper;
  readonly #layout: Layout;
  readonly #clock: Clock;
  readonly #prepared: () => Promise<void>;
  readonly #inboxes = new Map<string, Inbox>();
  readonly #removals = new Map<string, Promise<void>>();
  #sweeper: Timer | undefined;
  #ready: Promise<void> = Promise.resolve();
  #closed = false;

  /** @param prepared resolves when the nodes above all inboxes are there. */
  constructor(keeper: Keeper, layout: Layout, clock: Clock, prepared: () => Promise<void>) {
    this.#keeper = keeper;
    this.#layout = layout;
    this.#clock = clock;
    this.#prepared = prepared;
  }

  /** Resolves once all subscriptions are in force, or ZooKeeper is away: then messages wait, or the node's slow poll finds out. */
  get ready(): Promise<void> {
    return this.#ready;
  }

  subscribe(name: string, listener: Listener): () => void {
    let inbox = this.#inboxes.get(name);
    if (inbox === undefined) {
      inbox = new Inbox(this.#keeper, this.#layout, this.#layout.inbox(name), this.#prepared);
      this.#inboxes.set(name, inbox);
      const opened = Promise.resolve(this.#removals.get(name)).then(() => inbox?.open());
      const before = this.#ready;
      this.#ready = before.then(() => opened);
      this.#sweepSoon();
    }
    const subscribed = inbox;
    subscribed.listeners.add(listener);
    return () => {
      if (!subscribed.listeners.delete(listener) || subscribed.listeners.size > 0) return;
      if (this.#inboxes.get(name) === subscribed) this.#inboxes.delete(name);
      if (this.#closed) return;
      const removal: Promise<void> = subscribed.remove().finally(() => {
        if (this.#removals.get(name) === removal) this.#removals.delete(name);
      });
      this.#removals.set(name, removal);
    };
  }

  close(): void {
    this.#closed = true;
    for (const inbox of this.#inboxes.values()) inbox.listeners.clear();
    this.#inboxes.clear();
    this.#sweeper?.cancel();
  }

  #sweepSoon(): void {
    this.#sweeper ??= this.#clock.setTimer(
      SWEEP_PERIOD_MS,
      () => {
        this.#sweeper = undefined;
        if (this.#closed || this.#inboxes.size === 0) return;
        this.#sweepSoon();
        this.#sweep().catch(leaveToReconnection);
      },
      { keepProcess: false },
    );
  }

  /** Removes what was left by those who are gone. */
  async #sweep(): Promise<void> {
    const [all] = (await this.#keeper.multiRead([childrenOperation(this.#layout.inboxes)])).results;
    const names = [...(all?.children ?? [])];
    while (names.length > 0) {
      const paths = names.splice(0, SWEEP_PAGE).map((name) => `${this.#layout.inboxes}/${name}`);
      const { results } = await this.#keeper.multiRead(paths.map(childrenOperation));
      const left = paths.flatMap((path, i) => {
        const children = results[i]?.children ?? [];
        return children.includes(OWNER) ? [] : children.map((child) => `${path}/${child}`);
      });
      await Promise.all(left.map((path) => this.#keeper.operate(deleteOperation(path), CODE.noNode)));
    }
  }
}

/** One inbox that is listened to. */
class Inbox {
  readonly listeners = new Set<Listener>();
  readonly #keeper: Keeper;
  readonly #layout: Layout;
  readonly #path: string;
  readonly #prepared: () => Promise<void>;
  readonly #arrived = new Set<string>();
  #opened: Promise<void> = Promise.resolve();
  #taking = false;
  #stopWatch: (() => void) | undefined;

  constructor(keeper: Keeper, layout: Layout, path: string, prepared: () => Promise<void>) {
    this.#keeper = keeper;
    this.#layout = layout;
    this.#path = path;
    this.#prepared = prepared;
  }

  /** Resolves once messages arrive, or ZooKeeper is away: then they will after the reconnection. Never rejects. */
  open(): Promise<void> {
    this.#opened = this.#open();
    return this.#opened;
  }

  async #open(): Promise<void> {
    if (this.listeners.size === 0) return;
    let inForce: Promise<void> | undefined;
    const watch = this.#keeper.watch({
      path: this.#path,
      onEvent: (type, path) => {
        const name = path.slice(this.#path.length + 1);
        if (type === EVENT.created && name.startsWith(MESSAGE)) this.#take([name]);
      },
      // Where the session of the main connection has expired the owner is gone; and messages may wait.
      onForce: () => {
        inForce = this.#own()
          .then(() => this.#lookThrough())
          .catch(leaveToReconnection);
      },
    });
    this.#stopWatch = watch.stop;
    await watch.inForce;
    await inForce;
  }

  /** Removes the inbox and what is in it. Never rejects: what is left is swept up. */
  async remove(): Promise<void> {
    await this.#opened;
    this.#stopWatch?.();
    try {
      const [inbox] = (await this.#keeper.multiRead([childrenOperation(this.#path)])).results;
      const paths = [...(inbox?.children ?? []).map((name) => `${this.#path}/${name}`), this.#path];
      await Promise.all(paths.map((path) => this.#keeper.operate(deleteOperation(path), CODE.noNode)));
    } catch {
      // Nobody waits for it.
    }
  }

  async #own(): Promise<void> {
    await this.#prepared();
    const { nodeExists, noNode } = CODE;
    const inbox = this.#layout.create(this.#path, EMPTY, NODE.container);
    const owner = this.#layout.create(`${this.#path}/${OWNER}`, EMPTY, NODE.ephemeral);
    // Counted, so that a commit that leaves out its message since the inbox is missing can rely on that.
    const count = setOperation(this.#layout.inboxes, EMPTY, ANY_VERSION);
    for (;;) {
      const [made] = (await this.#keeper.multi([inbox, owner, count])).results;
      if (made?.code === CODE.ok) return;
      if (made?.code !== nodeExists) throw refused(made?.code ?? noNode);
      if ((await this.#keeper.operate(owner, nodeExists, noNode)) !== noNode) return;
    }
  }

  async #lookThrough(): Promise<void> {
    const [inbox] = (await this.#keeper.multiRead([childrenOperation(this.#path)])).results;
    this.#take((inbox?.children ?? []).filter((name) => name.startsWith(MESSAGE)));
  }

  #take(names: readonly string[]): void {
    for (const name of names) this.#arrived.add(name);
    if (this.#taking) return;
    this.#taking = true;
    this.#takeAll()
      .catch(leaveToReconnection)
      .finally(() => {
        this.#taking = false;
        if (this.#arrived.size > 0 && this.listeners.size > 0) this.#take([]);
      });
  }

  async #takeAll(): Promise<void> {
    while (this.#arrived.size > 0 && this.listeners.size > 0) {
      // ZooKeeper numbers them, so the order of names is that of their transactions.
      const paths = [...this.#arrived].sort().map((name) => `${this.#path}/${name}`);
      this.#arrived.clear();
      const asked = [this.#layout.floor, ...paths].map(dataOperation);
      const [first, ...messages] = (await this.#keeper.multiRead(asked)).results;
      const floor = new Floor(this.#layout, first);
      for (const [i, { data, stat, code }] of messages.entries()) {
        if (data === undefined || stat === undefined) {
          if (code !== CODE.noNode) throw refused(code);
          continue;
        }
        this.#keeper.operate(deleteOperation(paths[i] ?? ''), CODE.noNode).catch(leaveToReconnection);
        const version = floor.versionOf(stat.createdZxid);
        for (const listener of [...this.listeners]) listener(data.toString(), version);
      }
    }
  }
}

function leaveToReconnection(): void {}
