import type { AskedLock, RequestId } from '../core/commands.ts';
import type { Owner } from '../core/records.ts';
import type { EngineGuarantees } from '../engines/engine.ts';
import type { AcquireOptions, Hold } from '../node/service.ts';
import type { Token } from '../token.ts';

export interface NamedToken {
  readonly name: string;
  readonly token: Token;
}

/** What a client can ask for: the methods of a `LockService`, and three that concern the connection. */
export type Call = Asked & Traced;

type Asked =
  | { readonly method: 'authenticate'; readonly token: string }
  | { readonly method: 'ping' }
  | { readonly method: 'openSession'; readonly ttlMs: number }
  | { readonly method: 'keepAlive'; readonly session: string; readonly holds: readonly Hold[] }
  | { readonly method: 'closeSession'; readonly session: string }
  | {
      readonly method: 'acquire';
      readonly id: RequestId;
      readonly locks: readonly AskedLock[];
      readonly options: AcquireOptions;
    }
  | {
      readonly method: 'release';
      readonly id: RequestId;
      readonly grants: readonly NamedToken[];
      readonly forget: boolean;
    }
  | {
      readonly method: 'cancel';
      readonly id: RequestId;
      readonly names: readonly string[];
      readonly forget: boolean;
    }
  | {
      readonly method: 'transfer';
      readonly id: RequestId;
      readonly grants: readonly NamedToken[];
      readonly to: RequestId;
      readonly owner: Owner;
      readonly forget: boolean;
    }
  | {
      readonly method: 'breakHold';
      readonly name: string;
      readonly token: Token;
      readonly slot: number | undefined;
      readonly reason: string;
      readonly by: string;
    }
  | { readonly method: 'inspect'; readonly name: string }
  | {
      readonly method: 'list';
      readonly prefix: string;
      readonly limit: number;
      readonly after: string | undefined;
    }
  | { readonly method: 'position'; readonly id: RequestId; readonly name: string }
  /** Events of this session come to this connection, until `unlisten` or its end. */
  | { readonly method: 'listen' | 'unlisten'; readonly session: string };

/** What the request belongs to, as a W3C `traceparent`; an acquire without one belongs to that of its owner. */
interface Traced {
  readonly traceparent?: string | undefined;
}

export type Method = Call['method'];
export type CallOf<M extends Method> = Extract<Call, { readonly method: M }>;

/** The first message of a server, once it knows who asks. */
export interface Hello {
  readonly event: 'hello';
  readonly guarantees: EngineGuarantees;
  readonly limits: ConnectionLimits;
}

/** What one connection may send; a client that keeps to it is never refused for it. */
export interface ConnectionLimits {
  /** Bytes of one frame. */
  readonly frameBytes: number;
  readonly messagesPerFrame: number;
  /** Requests without an answer. */
  readonly requestsInFlight: number;
}

/** So many of the holds of a session are compared by one `keepAlive` at most. */
export const MOST_HOLDS = 500;
/** So many locks are listed by one `list` at most. */
export const LONGEST_PAGE = 100;
