import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * What stands between a client and its server. `pass`: everything; `cut`: connections end and none can be made; `stall`: everything is
 * taken and nothing goes on, as where packets are dropped.
 */
export type Passage = 'pass' | 'cut' | 'stall';

/** A network between one node and a server, on one port of this machine, that can be cut. */
export class TcpProxy {
  readonly #target: number;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #passage: Passage = 'pass';

  constructor(targetPort: number) {
    this.#target = targetPort;
    this.#server = createServer({ allowHalfOpen: false }, (socket) => this.#accept(socket));
  }

  /** @returns the port to connect to. */
  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const address = this.#server.address();
    if (typeof address !== 'object' || address === null) throw new Error('The proxy has no port.');
    return address.port;
  }

  set(passage: Passage): void {
    this.#passage = passage;
    for (const [near, far] of this.#pairs) {
      if (passage === 'cut') {
        near.destroy();
        far.destroy();
      } else if (passage === 'stall') {
        near.pause();
        far.pause();
      } else {
        near.resume();
        far.resume();
      }
    }
  }

  close(): void {
    this.set('cut');
    this.#server.close();
  }

  #accept(near: Socket): void {
    if (this.#passage === 'cut') {
      near.destroy();
      return;
    }
    const far = connect(this.#target, '127.0.0.1');
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [far, near] as const]) {
      from.setNoDelay(true);
      from.on('data', (chunk) => {
        to.write(chunk);
      });
      from.on('error', () => {});
      from.on('close', () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
    }
    if (this.#passage === 'stall') {
      near.pause();
      far.pause();
    }
  }
}
