import { randomInt } from 'node:crypto';
import type { ConnectionOptions } from 'node:tls';
import { InvalidArgumentError } from '../../errors.ts';

/** Where one server listens. */
export interface Server {
  readonly host: string;
  readonly port: number;
}

/** What opens connections: the servers, and what each connection has to say first. */
export interface Access {
  readonly servers: Servers;
  readonly tls: ConnectionOptions | undefined;
  readonly auth: { readonly scheme: string; readonly credentials: string } | undefined;
}

const DEFAULT_PORT = 2181;
const EXPECTED = 'like "host:port,host:port/path"';

/** The servers of one ensemble. All connections of an engine begin with the same one, as long as it works. */
export class Servers {
  readonly #servers: readonly Server[];
  #preferred: number;

  constructor(servers: readonly Server[]) {
    this.#servers = servers;
    // So that not all engines crowd on the first.
    this.#preferred = randomInt(servers.length);
  }

  /** Each server once. */
  inOrder(): Server[] {
    return [...this.#servers.slice(this.#preferred), ...this.#servers.slice(0, this.#preferred)];
  }

  /** Notes that a server does not work, so that the next connection starts elsewhere. */
  passOver(server: Server): void {
    if (this.#servers[this.#preferred] !== server) return;
    this.#preferred = (this.#preferred + 1) % this.#servers.length;
  }
}

/**
 * Reads ZooKeeper's usual text of servers and, behind them, the path under which everything is stored.
 *
 * @throws InvalidArgumentError
 */
export function parseConnect(connect: unknown): { servers: Server[]; path: string | undefined } {
  if (typeof connect !== 'string') throw new InvalidArgumentError('connect', EXPECTED, connect);
  const slash = connect.indexOf('/');
  const hosts = slash < 0 ? connect : connect.slice(0, slash);
  const path = slash < 0 || slash === connect.length - 1 ? undefined : connect.slice(slash);
  if (path !== undefined && !/^(\/(?!\.{1,2}(\/|$))[\w.:-]+)+$/.test(path)) {
    throw new InvalidArgumentError(
      'connect',
      `${EXPECTED}, and the path of letters, digits, "_", "-", "." and ":"`,
      connect,
    );
  }
  if (path === '/zookeeper' || path?.startsWith('/zookeeper/')) {
    throw new InvalidArgumentError(
      'connect',
      'with another path than "/zookeeper", which is reserved',
      connect,
    );
  }
  const servers = hosts.split(',').map((text) => {
    const [, bracketed, plain, digits] =
      /^(?:\[([0-9a-fA-F:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/.exec(text.trim()) ?? [];
    const host = bracketed ?? plain;
    const port = digits === undefined ? DEFAULT_PORT : Number(digits);
    if (host === undefined || port < 1 || port > 65_535) {
      throw new InvalidArgumentError('connect', EXPECTED, connect);
    }
    return { host, port };
  });
  return { servers, path };
}
