import { connect, createServer, type Server, type Socket } from 'node:net';

/** A network between a worker and a server, on one port of this machine, that can be cut: connections end and none can be made. */
export class CuttableProxy {
  readonly #target: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #cut = false;

  constructor(targetPort: number) {
    this.#target = targetPort;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** @returns the port to connect to. */
  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const address = this.#server.address();
    if (typeof address !== 'object' || address === null) throw new Error('The proxy has no port.');
    return address.port;
  }

  cut(): void {
    this.#cut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#cut = false;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }

  #accept(near: Socket): void {
    if (this.#cut) {
      near.destroy();
      return;
    }
    const far = connect(this.#target, '127.0.0.1');
    for (const [from, to] of [[near, far] as const, [far, near] as const]) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('data', (chunk) => {
        to.write(chunk);
      });
      from.on('error', () => {});
      from.on('close', () => {
        to.destroy();
        this.#sockets.delete(from);
      });
    }
  }
}
