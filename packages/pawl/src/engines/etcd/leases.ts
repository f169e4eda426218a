import { createHash, randomInt } from 'node:crypto';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { Clock } from '../../clock.ts';
import { EngineUnavailableError } from '../../errors.ts';
import type { EtcdConnection, Method } from './connection.ts';
import { decodeKeepAlive, decodeLeaseGrant, encodeLeaseGrant, encodeLeaseId } from './messages.ts';

/** `NOT_FOUND`: there is no lease of that id. */
export const NO_LEASE = 5;
/** etcd counts leases in whole seconds. */
const SECOND_MS = 1000;
/** How long a renewal may take to be answered, in ms. */
const ANSWER_LIMIT_MS = 5000;
/** A lease for messages lasts so long and is used half as long, in ms. */
const MESSAGE_TTL_MS = 60_000;

const grantMethod: Method<{ id: number; ttlSeconds: number }, { id: number; ttlSeconds: number }> = {
  path: '/etcdserverpb.Lease/LeaseGrant',
  encode: encodeLeaseGrant,
  decode: decodeLeaseGrant,
};
export const revokeMethod: Method<number, true> = {
  path: '/etcdserverpb.Lease/LeaseRevoke',
  encode: encodeLeaseId,
  decode: () => true,
};
const keepAliveMethod: Method<number, { id: number; ttlSeconds: number }> = {
  path: '/etcdserverpb.Lease/LeaseKeepAlive',
  encode: encodeLeaseId,
  decode: decodeKeepAlive,
};

/** The lease of a session, so that any node can keep it alive: 52 bits of the session's digest, which no other's has by chance. */
export function leaseOf(session: string): number {
  return createHash('sha256').update(session).digest().readUIntBE(0, 6) * 16 + 1;
}

/**
 * @returns the TTL that etcd gives, in ms: at least `ttlMs`.
 * @throws EngineUnavailableError, also where there is a lease of that id.
 */
export async function grantLease(connection: EtcdConnection, id: number, ttlMs: number): Promise<number> {
  const ttlSeconds = Math.ceil(ttlMs / SECOND_MS);
  return (await connection.call(grantMethod, { id, ttlSeconds }, true)).ttlSeconds * SECOND_MS;
}

interface Renewal {
  readonly id: number;
  resolve(alive: boolean): void;
  reject(error: EngineUnavailableError): void;
}

type Stream = ClientDuplexStream<number, { id: number; ttlSeconds: number }>;

/** Keeps leases alive over one stream, which answers in the order of its requests. */
export class Renewals {
  readonly #connection: EtcdConnection;
  #stream: Promise<Stream> | undefined;
  #waiting: Renewal[] = [];

  constructor(connection: EtcdConnection) {
    this.#connection = connection;
  }

  /** @returns whether the lease was there and has its whole TTL again. @throws EngineUnavailableError */
  async renew(id: number): Promise<boolean> {
    const stream = await this.#open();
    try {
      return await this.#renewOver(stream, id);
    } catch {
      // The member is gone, or its connection; the next may do it, and to do it twice changes nothing.
      return this.#renewOver(await this.#open(), id);
    }
  }

  async #renewOver(stream: Stream, id: number): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const timer = this.#connection.clock.setTimer(
      ANSWER_LIMIT_MS,
      () => stream.destroy(new Error(`no answer within ${ANSWER_LIMIT_MS} ms`)),
      { keepProcess: false },
    );
    this.#waiting.push({ id, resolve, reject });
    stream.write(id);
    try {
      return await promise;
    } finally {
      timer.cancel();
    }
  }

  close(): void {
    this.#stream?.then((stream) => stream.cancel()).catch(() => {});
    this.#stream = undefined;
  }

  #open(): Promise<Stream> {
    this.#stream ??= this.#openAnew();
    return this.#stream;
  }

  async #openAnew(): Promise<Stream> {
    try {
      const stream = await this.#connection.stream(keepAliveMethod);
      stream.on('data', ({ ttlSeconds }: { ttlSeconds: number }) =>
        this.#waiting.shift()?.resolve(ttlSeconds > 0),
      );
      const opened = this.#stream;
      let ended = false;
      const end = (error?: Error) => {
        // Told twice, as an error and as an end; by the second time others wait for the next stream.
        if (ended) return;
        ended = true;
        if (this.#stream === opened) {
          this.#stream = undefined;
          this.#connection.moveOn();
        }
        const said = error?.message ?? 'the stream ended';
        const message = `etcd did not keep a session alive: ${said}. It is tried again until the session ends.`;
        for (const { reject } of this.#waiting.splice(0))
          reject(new EngineUnavailableError(message, 'indefinite'));
      };
      stream.on('error', end);
      stream.on('end', () => end());
      return stream;
    } catch (error) {
      this.#stream = undefined;
      throw error;
    }
  }
}

/**
 * Leases that messages hang on, so that none stays for ever where nobody receives it. One is used for half its time and never renewed:
 * nobody has to look after it.
 */
export class MessageLeases {
  readonly #connection: EtcdConnection;
  readonly #clock: Clock;
  #lease: Promise<number> | undefined;
  #untilMs = 0;

  constructor(connection: EtcdConnection) {
    this.#connection = connection;
    this.#clock = connection.clock;
  }

  current(): Promise<number> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#lease === undefined || nowMs >= this.#untilMs) {
      this.#untilMs = nowMs + MESSAGE_TTL_MS / 2;
      this.#lease = this.#grant();
    }
    return this.#lease;
  }

  /** Takes a new one from now on: this one is gone before its time, as after a sleep of this machine. */
  replace(): void {
    this.#lease = undefined;
  }

  async #grant(): Promise<number> {
    try {
      const id = randomInt(1, 2 ** 48 - 1);
      await grantLease(this.#connection, id, MESSAGE_TTL_MS);
      return id;
    } catch (error) {
      this.#lease = undefined;
      throw error;
    }
  }
}
