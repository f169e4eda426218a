import type { Transport } from './transport.ts';

/** While the transport has so many bytes that the other side did not take, messages gather here. */
const ENOUGH_BYTES = 256 * 1024;
/** So many messages are sent without waiting for more: the other side begins with them while this one goes on. */
const EAGER = 32;
/** What a message costs in memory besides its text, in bytes. */
const MESSAGE_COST = 64;

export interface OutboxLimits {
  /** Bytes of one frame at most; a single message that is larger goes alone. */
  readonly frameBytes: number;
  readonly messagesPerFrame: number;
}

/** Gathers outgoing messages and sends them together: one frame, one system call, however many requests are under way. */
export class Outbox {
  readonly #transport: Transport;
  readonly #limits: OutboxLimits;
  readonly #onFlush: () => void;
  readonly #flushLater = () => this.flush();
  #messages: string[] = [];
  #gatheredBytes = 0;

  /** @param onFlush called after each attempt to send: the place to look at {@link bufferedBytes}. */
  constructor(transport: Transport, limits: OutboxLimits, onFlush: () => void = () => {}) {
    this.#transport = transport;
    this.#limits = limits;
    this.#onFlush = onFlush;
  }

  /** @param message one message, as JSON. */
  post(message: string): void {
    this.#messages.push(message);
    this.#gatheredBytes += message.length + MESSAGE_COST;
    if (this.#messages.length >= EAGER) this.flush();
    else if (this.#messages.length === 1) this.#transport.defer(this.#flushLater);
    else if (this.#isFull) this.#onFlush();
  }

  /** What was posted and the other side did not take yet, roughly, in bytes. */
  get bufferedBytes(): number {
    return this.#gatheredBytes + this.#transport.bufferedBytes;
  }

  /** Whether the other side takes less than it is sent. */
  get #isFull(): boolean {
    return this.#transport.bufferedBytes > ENOUGH_BYTES;
  }

  /** Sends what has gathered, unless the other side is far behind; then call again once the transport has drained. */
  flush(): void {
    const messages = this.#messages;
    if (messages.length === 0) return;
    if (this.#isFull) {
      this.#onFlush();
      return;
    }
    const { frameBytes, messagesPerFrame } = this.#limits;
    // A UTF-16 unit takes three bytes at most, so what is little need not be measured.
    const fits = this.#gatheredBytes * 3 <= frameBytes && messages.length <= messagesPerFrame;
    this.#messages = [];
    this.#gatheredBytes = 0;
    if (fits) this.#sendFrame(messages);
    else this.#sendFrames(messages);
    this.#onFlush();
  }

  /** Sends them in as many frames as the limits ask for. */
  #sendFrames(messages: readonly string[]): void {
    const { frameBytes, messagesPerFrame } = this.#limits;
    let from = 0;
    let bytes = 2;
    for (const [i, message] of messages.entries()) {
      const size = Buffer.byteLength(message) + 1;
      if (i > from && (bytes + size > frameBytes || i - from >= messagesPerFrame)) {
        this.#sendFrame(messages.slice(from, i));
        from = i;
        bytes = 2;
      }
      bytes += size;
    }
    this.#sendFrame(messages.slice(from));
  }

  #sendFrame(messages: readonly string[]): void {
    this.#transport.send(`[${messages.join(',')}]`);
  }
}
