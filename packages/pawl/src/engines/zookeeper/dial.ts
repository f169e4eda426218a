import { connect as connectPlain } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { sleep } from '../../clock.ts';
import { EngineUnavailableError } from '../../errors.ts';
import { Connection, type ConnectionOptions, unavailable } from './connection.ts';
import { Frames, frame } from './frames.ts';
import { decodeWelcome, encodeHello, type ZkSession } from './protocol.ts';
import type { Access, Server } from './servers.ts';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;
const EMPTY = Buffer.alloc(0);

export interface DialOptions extends ConnectionOptions {
  readonly access: Access;
  /** The session to attach to, or `NEW_SESSION`. */
  readonly session: ZkSession;
  /** The session's timeout to ask for, in ms. */
  readonly timeoutMs: number;
  /** How long a server may take to welcome, in ms. */
  readonly welcomeLimitMs: number;
  /** For how long to go on asking servers that are up but do not serve, as while they choose their leader, in ms. */
  readonly patienceMs: number;
}

/** The server is up, and takes no sessions for now. */
class NotServingError extends Error {}

/**
 * Opens a connection to the first server that welcomes it. Servers refuse who has heard of transactions that they have not: so nothing that was
 * read becomes unread.
 *
 * @returns `expired` where the session that was to be attached to is over.
 * @throws EngineUnavailableError
 */
export async function dial(options: DialOptions): Promise<Connection | 'expired'> {
  const { access, clock, patienceMs } = options;
  const untilMs = clock.monotonicMs() + patienceMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    let failure: unknown;
    let patient = false;
    for (const server of access.servers.inOrder()) {
      try {
        return await dialOne(server, options);
      } catch (error) {
        access.servers.passOver(server);
        patient ||= error instanceof NotServingError;
        failure = inWords(server, error);
      }
    }
    if (!patient || clock.monotonicMs() + pauseMs > untilMs) throw failure;
    await sleep(clock, pauseMs);
  }
}

async function dialOne(server: Server, options: DialOptions): Promise<Connection | 'expired'> {
  const connection = await shakeHands(server, options);
  const { auth } = options.access;
  if (connection === 'expired' || auth === undefined) return connection;
  try {
    await connection.authenticate(auth.scheme, auth.credentials);
    return connection;
  } catch (error) {
    connection.drop();
    throw error;
  }
}

function shakeHands(server: Server, options: DialOptions): Promise<Connection | 'expired'> {
  const { access, clock, session, timeoutMs, lastZxid, welcomeLimitMs } = options;
  const { promise, resolve, reject } = Promise.withResolvers<Connection | 'expired'>();
  const socket =
    access.tls === undefined ? connectPlain({ ...server }) : connectTls({ ...access.tls, ...server });
  socket.setNoDelay(true);
  let connection: Connection | undefined;
  let asked = false;
  const fail = (error: Error) => {
    timer.cancel();
    socket.destroy();
    if (connection !== undefined) connection.drop(error.message);
    else reject(asked ? new NotServingError(error.message) : error);
  };
  const late = () => fail(new Error(`no welcome within ${welcomeLimitMs} ms`));
  const timer = clock.setTimer(welcomeLimitMs, late, { keepProcess: false });
  const welcome = (payload: Buffer) => {
    timer.cancel();
    const welcomed = decodeWelcome(payload);
    if (welcomed.timeoutMs > 0) {
      connection = new Connection(socket, welcomed, options);
      resolve(connection);
    } else {
      socket.destroy();
      resolve('expired');
    }
  };
  const frames = new Frames((payload) => {
    if (connection === undefined) welcome(payload);
    else connection.receive(payload);
  });
  socket.on(access.tls === undefined ? 'connect' : 'secureConnect', () => {
    asked = true;
    socket.write(frame(encodeHello(lastZxid, timeoutMs, session), EMPTY));
  });
  socket.on('data', (chunk: Buffer) => {
    try {
      frames.take(chunk);
    } catch (error) {
      fail(new Error(`it sent what cannot be read: ${messageOf(error)}`));
    }
  });
  socket.on('error', fail);
  socket.on('close', () => fail(new Error('it closed the connection')));
  return promise;
}

function inWords({ host, port }: Server, error: unknown): EngineUnavailableError {
  if (error instanceof EngineUnavailableError) return error;
  return unavailable(`${host}:${port} cannot be reached: ${messageOf(error)}`, 'definite', error);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
