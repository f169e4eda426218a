import type { WebSocket } from 'ws';
import { turn } from '../clock.ts';
import type { Closing, Transport, TransportEvents } from './transport.ts';

/** Frames over a WebSocket that is open. */
export class SocketTransport implements Transport {
  readonly #socket: WebSocket;
  #events: TransportEvents | undefined;
  #early: string[] = [];
  #closing: Closing | undefined;

  readonly #onWritten = () => {
    if (this.#socket.bufferedAmount === 0) this.#events?.onDrain?.();
  };

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data, isBinary) => {
      if (isBinary) return this.close(1003, 'frames are text');
      const frame = data.toString();
      if (this.#events === undefined) this.#early.push(frame);
      else this.#events.onFrame(frame);
    });
    socket.on('close', (code, reason) => {
      this.#closing = { code, reason: reason.toString() };
      this.#events?.onClose(this.#closing);
    });
    // What went wrong is followed by the close, which says the same.
    socket.on('error', () => {});
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  start(events: TransportEvents): void {
    this.#events = events;
    for (const frame of this.#early.splice(0)) events.onFrame(frame);
    if (this.#closing !== undefined) events.onClose(this.#closing);
  }

  send(frame: string): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(frame, this.#onWritten);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  defer(run: () => void): void {
    // After all promises that are ready, before the next event of the network.
    process.nextTick(run);
  }

  yieldTo(run: () => void): void {
    void turn().then(run);
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  cut(): void {
    this.#socket.terminate();
  }
}
