import { JuteReader, JuteWriter } from './jute.ts';

/** The requests of ZooKeeper's protocol that the engine sends, by their numbers. */
export const OPERATION = {
  create: 1,
  delete: 2,
  getData: 4,
  setData: 5,
  getChildren: 8,
  sync: 9,
  ping: 11,
  check: 13,
  multi: 14,
  removeWatches: 18,
  createContainer: 19,
  multiRead: 22,
  auth: 100,
  addWatch: 106,
  closeSession: -11,
} as const;

/** The answers of ZooKeeper that the engine tells apart. */
export const CODE = {
  ok: 0,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  nodeExists: -110,
} as const;

const CODE_NAMES: Readonly<Record<number, string>> = {
  [-1]: 'system error',
  [-2]: 'runtime inconsistency',
  [-4]: 'connection loss',
  [-5]: 'marshalling error',
  [-6]: 'unimplemented',
  [-7]: 'operation timeout',
  [-8]: 'bad arguments',
  [-101]: 'no node',
  [-102]: 'not authenticated for this node',
  [-103]: 'bad version',
  [-108]: 'no children for ephemerals',
  [-110]: 'node exists',
  [-111]: 'not empty',
  [-112]: 'session expired',
  [-114]: 'invalid ACL',
  [-115]: 'authentication failed',
  [-118]: 'session moved',
  [-119]: 'not read-only',
  [-125]: 'quota exceeded',
  [-127]: 'throttled',
};

/** An answer of ZooKeeper in words. */
export function codeInWords(code: number): string {
  return `${CODE_NAMES[code] ?? 'error'} (${code})`;
}

/** Kinds of nodes, as `create` takes them. */
export const NODE = { persistent: 0, ephemeral: 1, persistentSequential: 2, container: 4 } as const;

/** Watch events. */
export const EVENT = { created: 1, deleted: 2, changed: 3 } as const;

/** `version` of a request that is to fit any. */
export const ANY_VERSION = -1;

/** One entry of an access control list: who may do what. */
export interface Acl {
  /** Sum of read 1, write 2, create 4, delete 8, admin 16. */
  readonly permissions: number;
  readonly scheme: string;
  readonly id: string;
}

/** What ZooKeeper knows of a node, as far as the engine wants it. */
export interface Stat {
  readonly createdZxid: bigint;
  readonly modifiedZxid: bigint;
  /** Counts the changes of its data since it was created. */
  readonly dataVersion: number;
  readonly ephemeralOwner: bigint;
}

/** One part of a `multi`, and its numbers. */
export interface Operation {
  readonly type: number;
  readonly path: string;
  /** The body of the request, encoded. */
  readonly body: Buffer;
}

/** The answer to one part of a `multi` or `multiRead`. */
export interface PartResult {
  readonly code: number;
  readonly stat?: Stat;
  readonly data?: Buffer;
  readonly children?: readonly string[];
}

export function encodeAcl(acl: readonly Acl[]): Buffer {
  const out = new JuteWriter().int(acl.length);
  for (const { permissions, scheme, id } of acl) out.int(permissions).text(scheme).text(id);
  return out.bytes();
}

/** @param acl as {@link encodeAcl} makes it; @param kind one of {@link NODE}. */
export function createOperation(path: string, data: Uint8Array, acl: Buffer, kind: number): Operation {
  const body = new JuteWriter().text(path).buffer(data).raw(acl).int(kind).bytes();
  return { type: kind === NODE.container ? OPERATION.createContainer : OPERATION.create, path, body };
}

export function setOperation(path: string, data: Uint8Array, version: number): Operation {
  const body = new JuteWriter().text(path).buffer(data).int(version).bytes();
  return { type: OPERATION.setData, path, body };
}

export function deleteOperation(path: string): Operation {
  return { type: OPERATION.delete, path, body: new JuteWriter().text(path).int(ANY_VERSION).bytes() };
}

export function checkOperation(path: string, version: number): Operation {
  return { type: OPERATION.check, path, body: new JuteWriter().text(path).int(version).bytes() };
}

/** Reads a node's data, without a watch. */
export function dataOperation(path: string): Operation {
  return { type: OPERATION.getData, path, body: new JuteWriter().text(path).bool(false).bytes() };
}

/** Lists a node's children, without a watch. */
export function childrenOperation(path: string): Operation {
  return { type: OPERATION.getChildren, path, body: new JuteWriter().text(path).bool(false).bytes() };
}

/** What stands before each operation of a `multi` or `multiRead`. */
export const HEAD_BYTES = 9;

/** The body of a `multi` or `multiRead`. */
export function encodeMulti(operations: readonly Operation[]): Buffer {
  const out = new JuteWriter();
  for (const { type, body } of operations) out.int(type).bool(false).int(-1).raw(body);
  return out.int(-1).bool(true).int(-1).bytes();
}

/** The answers to the parts of a `multi` or `multiRead`. */
export function decodeMulti(body: JuteReader): PartResult[] {
  const results: PartResult[] = [];
  for (;;) {
    const type = body.int();
    const done = body.bool();
    body.int();
    if (done) return results;
    results.push(decodePart(type, body));
  }
}

function decodePart(type: number, body: JuteReader): PartResult {
  switch (type) {
    case OPERATION.getData: {
      const data = body.buffer();
      return { code: CODE.ok, data, stat: decodeStat(body) };
    }
    case OPERATION.getChildren:
      return { code: CODE.ok, children: body.texts() };
    case OPERATION.setData:
      return { code: CODE.ok, stat: decodeStat(body) };
    case OPERATION.create:
      body.text();
      return { code: CODE.ok };
    case OPERATION.createContainer:
      body.text();
      return { code: CODE.ok, stat: decodeStat(body) };
    case OPERATION.delete:
    case OPERATION.check:
      return { code: CODE.ok };
    case -1:
      return { code: body.int() };
    default:
      throw new RangeError(`an answer of the unknown type ${type}`);
  }
}

function decodeStat(body: JuteReader): Stat {
  const createdZxid = body.long();
  const modifiedZxid = body.long();
  body.long();
  body.long();
  const dataVersion = body.int();
  body.int();
  body.int();
  const ephemeralOwner = body.long();
  body.int();
  body.int();
  body.long();
  return { createdZxid, modifiedZxid, dataVersion, ephemeralOwner };
}

/** The answer to the first message on a connection. */
export interface Welcome {
  /** The session's timeout as the server grants it, in ms; 0 where the session has expired. */
  readonly timeoutMs: number;
  readonly session: ZkSession;
}

/** What it takes to attach to a session of ZooKeeper's. */
export interface ZkSession {
  readonly id: bigint;
  readonly password: Buffer;
}

/** To be passed where a new session is wanted. */
export const NEW_SESSION: ZkSession = { id: 0n, password: Buffer.alloc(16) };

export function encodeHello(lastZxid: bigint, timeoutMs: number, session: ZkSession): Buffer {
  return new JuteWriter()
    .int(0)
    .long(lastZxid)
    .int(timeoutMs)
    .long(session.id)
    .buffer(session.password)
    .bool(false)
    .bytes();
}

export function decodeWelcome(frame: Buffer): Welcome {
  const body = new JuteReader(frame);
  body.int();
  const timeoutMs = body.int();
  const id = body.long();
  return { timeoutMs, session: { id, password: Buffer.from(body.buffer()) } };
}
