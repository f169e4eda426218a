import type { Timer } from '../../clock.ts';
import { isPawlError } from '../../errors.ts';
import { tokenAsText } from '../../protocol/results.ts';
import { checkLimit } from '../limits.ts';
import type { ServerParts } from '../parts.ts';
import type { Principal } from '../principal.ts';
import type { Exchange } from './exchange.ts';
import { problemOf } from './problem.ts';

/** How often a watched lock is looked at, in ms. */
const LOOK_EVERY_MS = 200;
/** A watch on which nothing happens says that it lives so often, in ms. */
const BEAT_EVERY_MS = 15_000;

/** Locks that are watched by server-sent events: the state at once, and whenever it changes. */
export class Watches {
  readonly #parts: ServerParts;
  readonly #open = new Set<Watch>();

  constructor(parts: ServerParts) {
    this.#parts = parts;
  }

  /** Answers with a stream that lasts until the client closes it. @throws LimitError, ForbiddenError, and what the engine throws */
  async start(principal: Principal, name: string, { request, response }: Exchange): Promise<void> {
    const { limits, desk, log } = this.#parts;
    checkLimit(limits, 'watches', this.#open.size, 'watch less, or ask another server');
    const look = async () =>
      JSON.stringify(await desk.perform(principal, { method: 'inspect', name }), tokenAsText);
    const write = (text: string) => {
      response.write(text);
      if (response.writableLength <= limits.bufferedBytes) return;
      log.note('warn', 'slowReaderCut', { bufferedBytes: response.writableLength });
      response.destroy();
    };
    const watch = new Watch(this.#parts, look, write, () => response.end());
    this.#open.add(watch);
    response.on('close', () => {
      watch.stop();
      this.#open.delete(watch);
    });
    try {
      const first = await look();
      if (request.destroyed) return;
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
      watch.begin(first);
    } catch (error) {
      this.#open.delete(watch);
      throw error;
    }
  }

  close(): void {
    for (const watch of [...this.#open]) watch.end();
  }
}

class Watch {
  readonly #parts: ServerParts;
  readonly #look: () => Promise<string>;
  readonly #write: (text: string) => void;
  readonly #onEnd: () => void;
  #last = '';
  #quietSinceMs = 0;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(
    parts: ServerParts,
    look: () => Promise<string>,
    write: (text: string) => void,
    onEnd: () => void,
  ) {
    this.#parts = parts;
    this.#look = look;
    this.#write = write;
    this.#onEnd = onEnd;
  }

  begin(state: string): void {
    if (this.#stopped) return;
    this.#tell(state);
    this.#timer = this.#parts.clock.setTimer(LOOK_EVERY_MS, () => void this.#next(), { keepProcess: false });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  end(): void {
    this.stop();
    this.#onEnd();
  }

  async #next(): Promise<void> {
    try {
      this.begin(await this.#look());
    } catch (error) {
      if (!isPawlError(error)) this.#parts.log.fault('watch', error);
      // An engine that cannot be reached may be back at the next look; a token that expired will not.
      if (isPawlError(error) && error.retryable) {
        this.begin(this.#last);
        return;
      }
      if (!this.#stopped) this.#write(`event: problem\ndata: ${JSON.stringify(problemOf(error))}\n\n`);
      this.end();
    }
  }

  #tell(state: string): void {
    const nowMs = this.#parts.clock.monotonicMs();
    if (state !== this.#last) this.#write(`data: ${state}\n\n`);
    else if (nowMs - this.#quietSinceMs >= BEAT_EVERY_MS) this.#write(': alive\n\n');
    else return;
    this.#last = state;
    this.#quietSinceMs = nowMs;
  }
}
