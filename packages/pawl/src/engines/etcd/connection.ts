import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  connectivityState,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import type { Clock } from '../../clock.ts';
import { ClosedError, EngineUnavailableError } from '../../errors.ts';
import { type Endpoint, type EtcdAddress, parseEndpoints } from './endpoints.ts';
import { decodeAuthenticate, encodeAuthenticate, encodeNothing } from './messages.ts';
import { tlsCredentials } from './tls.ts';
import { CHECK_MEMBERS, UnreachableError } from './unreachable.ts';

/** A method of etcd's API, with the encoding of what it takes and gives. */
export interface Method<Request, Answer> {
  readonly path: string;
  readonly encode: (request: Request) => Buffer;
  readonly decode: (answer: Buffer) => Answer;
}

const authenticate: Method<{ user: string; password: string }, string> = {
  path: '/etcdserverpb.Auth/Authenticate',
  encode: encodeAuthenticate,
  decode: decodeAuthenticate,
};

/** What every server of gRPC answers, whoever asks. */
const health: Method<null, true> = {
  path: '/grpc.health.v1.Health/Check',
  encode: encodeNothing,
  decode: () => true,
};

/** How long a call may take to be answered, a member to be reached, and the reason why it was not to be told, in ms. */
const ANSWER_LIMIT_MS = 5000;
const CONNECT_LIMIT_MS = 1500;
const REASON_LIMIT_MS = 250;
const CHANNEL_OPTIONS = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  'grpc.max_receive_message_length': -1,
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 3000,
};
/** The member cannot answer, or not in time: another may. */
const MOVE_ON: ReadonlySet<number> = new Set([
  status.UNAVAILABLE,
  status.DEADLINE_EXCEEDED,
  status.CANCELLED,
]);
/** etcd refused before it did anything; all else may have happened. */
const REFUSED: ReadonlySet<number> = new Set([
  status.INVALID_ARGUMENT,
  status.NOT_FOUND,
  status.FAILED_PRECONDITION,
  status.OUT_OF_RANGE,
  status.PERMISSION_DENIED,
  status.UNAUTHENTICATED,
  status.RESOURCE_EXHAUSTED,
  status.UNIMPLEMENTED,
]);

/** Calls to one of several members of etcd: the next one's turn comes where one does not answer. */
export class EtcdConnection {
  readonly clock: Clock;
  readonly #endpoints: readonly Endpoint[];
  readonly #credentials: ChannelCredentials;
  readonly #address: EtcdAddress;
  readonly #clients = new Map<Endpoint, Client>();
  #current = 0;
  #token: Promise<string> | undefined;
  #closed = false;

  /** @throws InvalidArgumentError */
  constructor(address: EtcdAddress, clock: Clock) {
    this.clock = clock;
    this.#address = address;
    this.#endpoints = parseEndpoints(address);
    this.#credentials = tlsCredentials(address.tls ?? {});
  }

  /**
   * @param repeatable whether to ask the next member where it is unknown if this one did it.
   * @throws EngineUnavailableError
   */
  async call<Request, Answer>(
    method: Method<Request, Answer>,
    request: Request,
    repeatable: boolean,
  ): Promise<Answer> {
    let lastError: unknown;
    let sent = false;
    // One more than there are members, for the one that wants the user to be authenticated anew.
    for (let turn = 0; turn <= this.#endpoints.length; turn += 1) {
      const member = this.#current;
      const client = this.#client();
      try {
        await this.#reach(client, member);
        const metadata = await this.#metadata(client);
        sent = true;
        return await this.#send(client, method, request, metadata);
      } catch (error) {
        if (error instanceof ClosedError) throw error;
        lastError = error;
        const surelyNot: boolean = !sent || isAboutToken(error);
        sent = sent && !surelyNot;
        if (!this.#turnFrom(member, error)) break;
        if (!surelyNot && !repeatable) break;
      }
    }
    throw unavailable(lastError, sent);
  }

  /** Opens a stream at a member that can be reached. @throws EngineUnavailableError where none can. */
  async stream<Request, Answer>(
    method: Method<Request, Answer>,
  ): Promise<ClientDuplexStream<Request, Answer>> {
    let lastError: unknown;
    for (let turn = 0; turn <= this.#endpoints.length; turn += 1) {
      const member = this.#current;
      const client = this.#client();
      try {
        await this.#reach(client, member);
        const metadata = await this.#metadata(client);
        const stream = client.makeBidiStreamRequest(method.path, method.encode, method.decode, metadata);
        // One that nobody needs any more is cancelled before anybody listens, which is an error too.
        return stream.on('error', (error) => {
          if (isAboutToken(error)) this.forgetToken();
        });
      } catch (error) {
        if (error instanceof ClosedError) throw error;
        lastError = error;
        if (!this.#turnFrom(member, error)) break;
      }
    }
    throw unavailable(lastError, false);
  }

  /** Turns to the next member: the current one, though it can be reached, does not do its work. */
  moveOn(): void {
    this.#moveOn(this.#current);
  }

  /** The token of authentication is not accepted any more: the next call asks for another. */
  forgetToken(): void {
    this.#token = undefined;
  }

  close(): void {
    this.#closed = true;
    for (const client of this.#clients.values()) client.close();
  }

  /** @returns whether another try, with a new token or at the next member, may fare better than the one that ended so. */
  #turnFrom(member: number, error: unknown): boolean {
    if (isAboutToken(error) && this.#token !== undefined) this.forgetToken();
    else if (MOVE_ON.has(codeOf(error))) this.#moveOn(member);
    else return false;
    return true;
  }

  #moveOn(from: number): void {
    if (this.#current === from) this.#current = (from + 1) % this.#endpoints.length;
  }

  #client(): Client {
    if (this.#closed) throw new ClosedError('The etcd engine');
    const endpoint = this.#endpoints[this.#current];
    if (endpoint === undefined) throw new RangeError('There is no member of etcd to turn to.');
    let client = this.#clients.get(endpoint);
    if (client === undefined) {
      const ways = endpoint.secure ? this.#credentials : credentials.createInsecure();
      client = new Client(endpoint.target, ways, CHANNEL_OPTIONS);
      this.#clients.set(endpoint, client);
    }
    return client;
  }

  async #reach(client: Client, member: number): Promise<void> {
    if (await this.#isReady(client)) return;
    // Whoever waits for a connection is not told why there is none; a call that needs it is.
    try {
      await this.#send(client, health, null, new Metadata(), REASON_LIMIT_MS);
    } catch (error) {
      if (this.#closed) throw new ClosedError('The etcd engine');
      const code = codeOf(error);
      if (!MOVE_ON.has(code)) return;
      const { target, secure } = this.#endpoints[member] ?? { target: 'it', secure: false };
      const silent = `no answer within ${CONNECT_LIMIT_MS} ms`;
      throw new UnreachableError(target, code === status.UNAVAILABLE ? detailsOf(error) : silent, secure);
    }
  }

  #isReady(client: Client): Promise<boolean> {
    if (client.getChannel().getConnectivityState(true) === connectivityState.READY)
      return Promise.resolve(true);
    const deadline = new Date(this.clock.wallMs() + CONNECT_LIMIT_MS);
    return new Promise((resolve) => client.waitForReady(deadline, (error) => resolve(error === undefined)));
  }

  async #metadata(client: Client): Promise<Metadata> {
    const metadata = new Metadata();
    // A member that has lost its peers says so at once, instead of letting the call wait.
    metadata.set('hasleader', 'true');
    const { user, password } = this.#address;
    if (user === undefined || password === undefined) return metadata;
    this.#token ??= this.#send(client, authenticate, { user, password }, metadata.clone());
    try {
      metadata.set('token', await this.#token);
    } catch (error) {
      this.#token = undefined;
      throw error;
    }
    return metadata;
  }

  #send<Request, Answer>(
    client: Client,
    { path, encode, decode }: Method<Request, Answer>,
    request: Request,
    metadata: Metadata,
    limitMs = ANSWER_LIMIT_MS,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const options: CallOptions = { deadline: this.clock.wallMs() + limitMs };
      client.makeUnaryRequest(path, encode, decode, request, metadata, options, (error, answer) => {
        if (error !== null) reject(error);
        else if (answer === undefined) reject(new Error('etcd answered with nothing'));
        else resolve(answer);
      });
    });
  }
}

function unavailable(error: unknown, sent: boolean): EngineUnavailableError {
  const said = detailsOf(error);
  const outcome = sent && !REFUSED.has(codeOf(error)) ? 'indefinite' : 'definite';
  const message = `etcd did not do what was asked: ${said}. ${adviceOn(error, said)}`;
  return new EngineUnavailableError(message, outcome, { cause: error });
}

function adviceOn(error: unknown, said: string): string {
  if (error instanceof UnreachableError) return error.advice;
  const account = REFUSED.has(codeOf(error)) && /user|password|permission|authenticat/i.test(said);
  return account
    ? 'Check user and password, and that this user may read and write the keys under the prefix.'
    : CHECK_MEMBERS;
}

/** Whether the token of authentication is over, or older than a change of the users. Nothing else was looked at. */
function isAboutToken(error: unknown): boolean {
  return codeOf(error) === status.UNAUTHENTICATED || /revision of auth store is old/.test(detailsOf(error));
}

function detailsOf(error: unknown): string {
  return error instanceof Error ? ((error as Partial<ServiceError>).details ?? error.message) : String(error);
}

/** The status of gRPC, of an error of this module or of what it was made from. */
export function codeOf(error: unknown): number {
  if (!(error instanceof Error)) return status.UNKNOWN;
  const { code } = error as Partial<ServiceError>;
  if (typeof code === 'number') return code;
  return error.cause === undefined ? status.UNKNOWN : codeOf(error.cause);
}
