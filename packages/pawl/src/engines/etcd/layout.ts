import { EngineUnavailableError, StoreCorruptError, StoreVersionError } from '../../errors.ts';
import type { EtcdConnection, Method } from './connection.ts';
import { decodeTxn, encodeTxn, type RangeAnswer, type Txn, type TxnAnswer } from './messages.ts';

const FORMAT = 1;

export const txnMethod: Method<Txn, TxnAnswer> = {
  path: '/etcdserverpb.KV/Txn',
  encode: encodeTxn,
  decode: decodeTxn,
};

/** Where things lie in etcd, all under one prefix. */
export class Layout {
  readonly format: string;
  readonly floor: string;
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.format = `${prefix}/format`;
    this.floor = `${prefix}/floor`;
  }

  /** A record of Pawl's. */
  entry(key: string): string {
    return `${this.#prefix}/entry/${key}`;
  }

  keyOf(entry: string): string {
    return entry.slice(this.#prefix.length + '/entry/'.length);
  }

  /** Hangs on the session's lease, so it is there while the session is alive. */
  alive(session: string): string {
    return `${this.#prefix}/alive/${session}`;
  }

  /** Stays until the session was cleaned up after. */
  opened(session: string): string {
    return `${this.#prefix}/opened/${session}`;
  }

  /** A message for an inbox; each of one transaction needs a key of its own. */
  message(inbox: string, index: number | ''): string {
    return `${this.#prefix}/inbox/${inbox}/${index}`;
  }

  lastPart(key: string): string {
    return key.slice(key.lastIndexOf('/') + 1);
  }
}

/** The end of the range of all keys that start with `prefix`: no byte of UTF-8 is 0xff, and U+10FFFF is never used. */
export function endOf(prefix: string): string {
  return `${prefix}\u{10FFFF}`;
}

/**
 * Makes the layout if it is not there.
 *
 * @throws StoreVersionError, StoreCorruptError, EngineUnavailableError
 */
export async function prepareLayout(connection: EtcdConnection, layout: Layout): Promise<void> {
  const answer = await connection.call(
    txnMethod,
    {
      compare: [{ key: layout.format, modRevision: 0 }],
      success: [{ put: { key: layout.format, value: String(FORMAT) } }],
      failure: [{ range: { key: layout.format } }],
    },
    true,
  );
  if (!answer.succeeded) {
    const found = rangeOf(answer, 0).kvs[0]?.value ?? '';
    if (!/^[1-9]\d{0,8}$/.test(found)) {
      throw new StoreCorruptError(`The format number ${layout.format} in etcd`, `it is "${found}"`);
    }
    if (Number(found) > FORMAT)
      throw new StoreVersionError(`Pawl's data under ${layout.format}`, Number(found), FORMAT);
  }
}

/** The answer to the range that was asked for at `index`. */
export function rangeOf(answer: TxnAnswer, index: number): RangeAnswer {
  const response = answer.responses[index];
  if (response !== null && response !== undefined && 'kvs' in response) return response;
  throw new EngineUnavailableError('etcd left out an answer that was asked for.', 'indefinite');
}
