import type { Transport } from '../protocol/transport.ts';

/** So many messages are looked at in a turn of the event loop, divided among the connections that have any, ... */
const MESSAGES_PER_TURN = 96;
/** ... but so many of each. */
const LEAST_SHARE = 4;

/** How many connections had messages in the present turn or the one before. */
export class Sharers {
  count = 0;

  get share(): number {
    return Math.max(LEAST_SHARE, MESSAGES_PER_TURN / Math.max(1, this.count));
  }
}

/** What a client has sent, a share at a time: one that sends much waits behind itself, and the others do not wait behind it. */
export class FairShare<M> {
  readonly #sharers: Sharers;
  readonly #transport: Transport;
  readonly #handle: (message: M) => void;
  readonly #mayRead: () => boolean;
  #waiting: M[] = [];
  #handled = 0;
  #paused = false;

  /** @param mayRead whether more may be read from the client as far as others are concerned. */
  constructor(sharers: Sharers, transport: Transport, handle: (message: M) => void, mayRead: () => boolean) {
    this.#sharers = sharers;
    this.#transport = transport;
    this.#handle = handle;
    this.#mayRead = mayRead;
  }

  /** Whether there is so much that nothing more shall be read. */
  get isFull(): boolean {
    return this.#paused;
  }

  /** Handles the messages in their order: at once, as long as its share of this turn lasts. */
  add(messages: readonly M[]): void {
    if (this.#waiting.length === 0) this.#waiting = [...messages];
    else for (const message of messages) this.#waiting.push(message);
    this.#goOn();
  }

  /** Handles nothing more. */
  stop(): void {
    this.#waiting = [];
  }

  #goOn(): void {
    let next = 0;
    while (next < this.#waiting.length && this.#handled < this.#sharers.share) {
      if (this.#handled === 0) {
        this.#sharers.count += 1;
        this.#transport.yieldTo(() => this.#nextTurn());
      }
      this.#handled += 1;
      const message = this.#waiting[next];
      next += 1;
      if (message !== undefined) this.#handle(message);
    }
    this.#waiting.splice(0, next);
    if (this.#waiting.length === 0 || this.#paused) return;
    this.#paused = true;
    this.#transport.pause();
  }

  #nextTurn(): void {
    this.#handled = 0;
    this.#sharers.count -= 1;
    this.#goOn();
    if (this.#waiting.length > 0 || !this.#paused) return;
    this.#paused = false;
    if (this.#mayRead()) this.#transport.resume();
  }
}
