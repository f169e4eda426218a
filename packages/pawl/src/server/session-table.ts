import type { Clock, Timer } from '../clock.ts';
import type { RequestId } from '../core/commands.ts';
import type { LockService, SessionEvent } from '../node/service.ts';
import { TransientMap } from '../transient-map.ts';
import { checkLimit, type Limits } from './limits.ts';

/** An entry that nobody used for so long is dropped, in ms: its session went on elsewhere, or its end went unheard. */
const STALE_MS = 600_000;

interface Entry {
  /** Requests that hold or wait, each with the number of its locks. */
  readonly requests: TransientMap<string, number>;
  readonly subscribers: Set<(event: SessionEvent) => void>;
  /** It was alive when it was last used. */
  proven: boolean;
  locks: number;
  /** Requests that are over and remembered. */
  remembered: number;
  unlisten: (() => void) | undefined;
  usedAtMs: number;
}

/**
 * The sessions that are served here: who wants to hear of them, and how much each has. It only bounds and delivers; what is true
 * stands in the engine.
 */
export class SessionTable {
  readonly #service: Pick<LockService, 'listen'>;
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #onOver: (session: string) => void;
  readonly #entries = new Map<string, Entry>();
  #timer: Timer | undefined;

  /** @param onOver called with each session that is found to be over, before its subscribers are dropped. */
  constructor(
    service: Pick<LockService, 'listen'>,
    clock: Clock,
    limits: Limits,
    onOver: (session: string) => void = () => {},
  ) {
    this.#service = service;
    this.#clock = clock;
    this.#limits = limits;
    this.#onOver = onOver;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** @throws LimitError where one session more would be too many. */
  checkRoom(): void {
    checkLimit(this.#limits, 'sessions', this.#entries.size, 'close sessions, or ask another server');
  }

  /** The session is alive and in use. One for which there is no room is served all the same: it lives already. */
  use(session: string): void {
    const known = this.#entries.has(session);
    if (known || this.#entries.size < this.#limits.sessions) this.#entry(session).proven = true;
  }

  /** Whether it is known here to be alive, as far as was heard. */
  isProven(session: string): boolean {
    return this.#entries.get(session)?.proven === true;
  }

  /**
   * An acquire is about to be asked for.
   *
   * @returns whether it was not known.
   * @throws LimitError where the session has as much as it may.
   */
  asked({ session, request }: RequestId, locks: number): boolean {
    const entry = this.#entry(session);
    if (entry.requests.has(request)) return false;
    const most = this.#limits.locksPerSession;
    checkLimit(
      this.#limits,
      'locksPerSession',
      entry.locks + locks - 1,
      `a session has at most ${most} locks`,
    );
    const known = entry.requests.size + entry.remembered;
    checkLimit(
      this.#limits,
      'requestsPerSession',
      known,
      'use another session, or no request ids of your own',
    );
    entry.requests.set(request, locks);
    entry.locks += locks;
    return true;
  }

  /** The request neither holds nor waits any more. */
  over({ session, request }: RequestId, remembered = false): void {
    const entry = this.#entries.get(session);
    const locks = entry?.requests.get(request);
    if (entry === undefined || locks === undefined) return;
    entry.requests.delete(request);
    entry.locks -= locks;
    if (remembered) entry.remembered += 1;
  }

  /** The session is over. @returns how many requests it still had. */
  ended(session: string): number {
    this.#onOver(session);
    return this.#drop(session);
  }

  /** Tells `subscriber` of the session's events. @returns a function that stops it. @throws LimitError */
  subscribe(session: string, subscriber: (event: SessionEvent) => void): () => void {
    const entry = this.#entry(session);
    entry.subscribers.add(subscriber);
    entry.unlisten ??= this.#service.listen(session, (event) => {
      if (event.kind === 'broken') this.over({ session, request: event.request }, true);
      for (const tell of [...entry.subscribers]) tell(event);
    });
    return () => {
      entry.subscribers.delete(subscriber);
      if (entry.subscribers.size > 0) return;
      entry.unlisten?.();
      entry.unlisten = undefined;
      if (entry.requests.size === 0 && this.#entries.get(session) === entry) this.#entries.delete(session);
    };
  }

  close(): void {
    this.#timer?.cancel();
    for (const session of [...this.#entries.keys()]) this.#drop(session);
  }

  #drop(session: string): number {
    const entry = this.#entries.get(session);
    if (entry === undefined) return 0;
    entry.unlisten?.();
    this.#entries.delete(session);
    return entry.requests.size;
  }

  #entry(session: string): Entry {
    const usedAtMs = this.#clock.monotonicMs();
    const present = this.#entries.get(session);
    if (present !== undefined) {
      present.usedAtMs = usedAtMs;
      return present;
    }
    this.checkRoom();
    const entry: Entry = {
      requests: new TransientMap(),
      subscribers: new Set(),
      proven: false,
      locks: 0,
      remembered: 0,
      unlisten: undefined,
      usedAtMs,
    };
    this.#entries.set(session, entry);
    this.#sweepLater();
    return entry;
  }

  #sweepLater(): void {
    const sweep = () => {
      this.#timer = undefined;
      const staleMs = this.#clock.monotonicMs() - STALE_MS;
      for (const [session, entry] of this.#entries)
        if (entry.subscribers.size === 0 && entry.usedAtMs < staleMs) this.#entries.delete(session);
      if (this.#entries.size > 0) this.#sweepLater();
    };
    this.#timer ??= this.#clock.setTimer(STALE_MS / 2, sweep, { keepProcess: false });
  }
}
