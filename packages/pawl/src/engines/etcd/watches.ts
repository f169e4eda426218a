import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { Timer } from '../../clock.ts';
import type { EtcdConnection, Method } from './connection.ts';
import { endOf } from './layout.ts';
import { decodeWatch, encodeWatch, type KeyValue, type WatchNews, type WatchRequest } from './messages.ts';

const watchMethod: Method<WatchRequest, WatchNews> = {
  path: '/etcdserverpb.Watch/Watch',
  encode: encodeWatch,
  decode: decodeWatch,
};

/** How often the stream is asked whether it still works, in ms; one that says nothing for two and a half times that is given up. */
const PROBE_MS = 1000;
/** How long to wait before a stream that ended is opened again, in ms. */
const PAUSE_MS = 100;

export interface Watched {
  readonly prefix: string;
  readonly only: 'puts' | 'deletes';
  readonly onEvent: (kv: KeyValue) => void;
  /** Called where events may have been missed, and once at the start. */
  readonly onGap?: () => void;
}

interface Watch extends Watched {
  readonly id: number;
  /** The revision to go on from; 0: from now. */
  next: number;
  /** Resolves once the watch is in force, or etcd turned out to be away. */
  readonly ready: PromiseWithResolvers<void>;
}

/** All watches of an engine, on one stream that is opened again wherever it breaks; each goes on where it was. */
export class Watches {
  readonly #connection: EtcdConnection;
  readonly #watches = new Map<number, Watch>();
  #stream: ClientDuplexStream<WatchRequest, WatchNews> | undefined;
  #opening = false;
  #lastId = 0;
  #heardAtMs = 0;
  #refusedBefore = false;
  #timer: Timer | undefined;

  constructor(connection: EtcdConnection) {
    this.#connection = connection;
  }

  /** Watches a prefix of keys. `ready` resolves once no event is missed any more, or etcd is away. */
  watch(watched: Watched): { ready: Promise<void>; stop: () => void } {
    this.#lastId += 1;
    const watch: Watch = { ...watched, id: this.#lastId, next: 0, ready: Promise.withResolvers<void>() };
    this.#watches.set(watch.id, watch);
    if (this.#stream === undefined) this.#openSoon(0);
    else this.#create(this.#stream, watch);
    return { ready: watch.ready.promise, stop: () => this.#stop(watch.id) };
  }

  close(): void {
    for (const { ready } of this.#watches.values()) ready.resolve();
    this.#watches.clear();
    this.#timer?.cancel();
    this.#stream?.cancel();
    this.#stream = undefined;
  }

  #stop(id: number): void {
    this.#watches.get(id)?.ready.resolve();
    if (!this.#watches.delete(id)) return;
    if (this.#watches.size === 0) this.close();
    else this.#stream?.write({ cancel: id });
  }

  #openSoon(delayMs: number): void {
    if (this.#opening) return;
    this.#opening = true;
    this.#timer?.cancel();
    if (delayMs === 0) void this.#open();
    else
      this.#timer = this.#connection.clock.setTimer(delayMs, () => void this.#open(), { keepProcess: false });
  }

  async #open(): Promise<void> {
    try {
      const stream = await this.#connection.stream(watchMethod);
      this.#opening = false;
      if (this.#watches.size === 0) return stream.cancel();
      this.#stream = stream;
      this.#heardAtMs = this.#connection.clock.monotonicMs();
      stream.on('data', (news: WatchNews) => this.#hear(stream, news));
      stream.on('error', () => this.#ended(stream));
      stream.on('end', () => this.#ended(stream));
      for (const watch of this.#watches.values()) this.#create(stream, watch);
      this.#probeLater(stream);
    } catch {
      this.#opening = false;
      this.#away();
    }
  }

  #create(stream: ClientDuplexStream<WatchRequest, WatchNews>, { id, prefix, next, only }: Watch): void {
    stream.write({ create: { id, key: prefix, end: endOf(prefix), since: next, only } });
  }

  #hear(stream: ClientDuplexStream<WatchRequest, WatchNews>, news: WatchNews): void {
    if (stream !== this.#stream) return;
    this.#heardAtMs = this.#connection.clock.monotonicMs();
    const watch = this.#watches.get(news.id);
    if (news.created && news.canceled && news.compactRevision === 0) this.#refused(stream, news);
    else if (watch !== undefined) this.#tell(stream, watch, news);
  }

  #tell(stream: ClientDuplexStream<WatchRequest, WatchNews>, watch: Watch, news: WatchNews): void {
    if (news.created && !news.canceled) {
      const anew = watch.next === 0;
      if (anew) watch.next = news.revision + 1;
      this.#refusedBefore = false;
      watch.ready.resolve();
      if (anew) watch.onGap?.();
    }
    for (const kv of news.kvs) {
      watch.next = kv.modRevision + 1;
      watch.onEvent(kv);
    }
    if (!news.canceled) return;
    // What was missed is compacted away, or the member gave the watch up: from now on, then.
    watch.next = news.compactRevision;
    watch.onGap?.();
    if (news.compactRevision > 0) this.#create(stream, watch);
    else stream.cancel();
  }

  /** etcd makes no watch for who may not look, and does not say which it means. */
  #refused(stream: ClientDuplexStream<WatchRequest, WatchNews>, { cancelReason }: WatchNews): void {
    const aboutToken = /auth token|auth store is old/.test(cancelReason);
    const outdated = aboutToken && !this.#refusedBefore;
    this.#refusedBefore = true;
    if (aboutToken) this.#connection.forgetToken();
    // With a new token all are made again at once, and whoever waits for one to be in force goes on waiting.
    if (outdated) this.#stream = undefined;
    stream.cancel();
    if (outdated) this.#openSoon(0);
  }

  #ended(stream: ClientDuplexStream<WatchRequest, WatchNews>): void {
    if (this.#stream !== stream) return;
    this.#stream = undefined;
    this.#connection.moveOn();
    this.#away();
  }

  #away(): void {
    if (this.#watches.size === 0) return;
    for (const { ready } of this.#watches.values()) ready.resolve();
    this.#openSoon(PAUSE_MS);
  }

  #probeLater(stream: ClientDuplexStream<WatchRequest, WatchNews>): void {
    this.#timer?.cancel();
    this.#timer = this.#connection.clock.setTimer(
      PROBE_MS,
      () => {
        if (this.#stream !== stream) return;
        const silentMs = this.#connection.clock.monotonicMs() - this.#heardAtMs;
        if (silentMs > 2.5 * PROBE_MS) stream.cancel();
        else stream.write({ progress: true });
        this.#probeLater(stream);
      },
      { keepProcess: false },
    );
  }
}
