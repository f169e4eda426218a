import type { Closing, Transport, TransportEvents } from './transport.ts';

/** Two ends of a connection within one process, for tests in simulated time: frames arrive without any time passing. */
export function loopback(): [Transport, Transport] {
  const one = new LoopbackEnd();
  const other = new LoopbackEnd();
  one.other = other;
  other.other = one;
  return [one, other];
}

class LoopbackEnd implements Transport {
  other: LoopbackEnd | undefined;
  readonly bufferedBytes = 0;
  #events: TransportEvents | undefined;
  #early: string[] = [];
  #closing: Closing | undefined;

  start(events: TransportEvents): void {
    this.#events = events;
    for (const frame of this.#early.splice(0)) events.onFrame(frame);
    if (this.#closing !== undefined) events.onClose(this.#closing);
  }

  send(frame: string): void {
    if (this.#closing !== undefined) return;
    queueMicrotask(() => this.other?.arrive(frame));
  }

  pause(): void {}

  resume(): void {}

  defer(run: () => void): void {
    queueMicrotask(run);
  }

  yieldTo(run: () => void): void {
    queueMicrotask(run);
  }

  close(code: number, reason: string): void {
    const closing = { code, reason };
    queueMicrotask(() => {
      this.closed(closing);
      this.other?.closed(closing);
    });
  }

  cut(): void {
    this.close(1006, '');
  }

  arrive(frame: string): void {
    if (this.#closing !== undefined) return;
    if (this.#events === undefined) this.#early.push(frame);
    else this.#events.onFrame(frame);
  }

  closed(closing: Closing): void {
    if (this.#closing !== undefined) return;
    this.#closing = closing;
    this.#events?.onClose(closing);
  }
}
