import { StoreCorruptError, StoreVersionError } from '../../errors.ts';
import { FIRST_FLOOR } from './floor.ts';
import { type Keeper, refused } from './keeper.ts';
import {
  type Acl,
  CODE,
  createOperation,
  dataOperation,
  encodeAcl,
  NODE,
  type Operation,
} from './protocol.ts';

/** The format of the nodes; a newer Pawl that changes them counts up. */
const FORMAT = 1;
/** Fixed by the format: all engines must look for a key's guard in the same place. */
const GUARDS = 1024;
const EMPTY = Buffer.alloc(0);

/**
 * Where everything stands:
 *
 * `format` the number of the format · `floor` how versions follow from transactions · `keys/…` the entries · `guard/<n>` counts the writes
 * of all keys that belong to it · `sessions/<id>` there while the session lives · `opened/<id>` there until its end is forgotten, with what
 * it takes to keep it alive · `inbox/<inbox>` messages, and `owner` while somebody listens
 */
export class Layout {
  readonly root: string;
  readonly floor: string;
  readonly keys: string;
  readonly sessions: string;
  readonly opened: string;
  readonly inboxes: string;
  readonly #format: string;
  readonly #guards: string;
  readonly #acl: Buffer;
  #prepared: Promise<void> | undefined;

  constructor(root: string, acl: readonly Acl[]) {
    this.root = root;
    this.floor = `${root}/floor`;
    this.keys = `${root}/keys`;
    this.sessions = `${root}/sessions`;
    this.opened = `${root}/opened`;
    this.inboxes = `${root}/inbox`;
    this.#format = `${root}/format`;
    this.#guards = `${root}/guard`;
    this.#acl = encodeAcl(acl);
  }

  session(id: string): string {
    return `${this.sessions}/${id}`;
  }

  marker(id: string): string {
    return `${this.opened}/${id}`;
  }

  inbox(inbox: string): string {
    return `${this.inboxes}/=${encodeURIComponent(inbox)}`;
  }

  /** The guard of a number from {@link guardOf}. */
  guard(guard: number): string {
    return `${this.#guards}/${guard}`;
  }

  create(path: string, data: Uint8Array = EMPTY, kind: number = NODE.persistent): Operation {
    return createOperation(path, data, this.#acl, kind);
  }

  /**
   * Makes all nodes if they are not there. Several engines may do so at once.
   *
   * @throws StoreVersionError where a newer Pawl made them, StoreCorruptError, EngineUnavailableError
   */
  prepare(keeper: Keeper): Promise<void> {
    if (this.#prepared === undefined) {
      const prepared = this.#prepare(keeper);
      this.#prepared = prepared;
      prepared.catch(() => {
        this.#prepared = undefined;
      });
    }
    return this.#prepared;
  }

  async #prepare(keeper: Keeper): Promise<void> {
    if (!(await this.#checkFormat(keeper))) {
      await this.#createAll(keeper);
      await this.#checkFormat(keeper);
    }
  }

  /** @returns whether there is a format. */
  async #checkFormat(keeper: Keeper): Promise<boolean> {
    const [found] = (await keeper.multiRead([dataOperation(this.#format)])).results;
    if (found?.code === CODE.noNode) return false;
    if (found?.data === undefined) throw refused(found?.code ?? 0);
    const text = found.data.toString();
    const where = `The ZooKeeper path "${this.root}"`;
    if (!/^[1-9]\d{0,8}$/.test(text)) throw new StoreCorruptError(where, 'its format is no number');
    if (Number(text) > FORMAT) throw new StoreVersionError(where, Number(text), FORMAT);
    return true;
  }

  async #createAll(keeper: Keeper): Promise<void> {
    for (let at = this.root.indexOf('/', 1); ; at = this.root.indexOf('/', at + 1)) {
      const path = at < 0 ? this.root : this.root.slice(0, at);
      // What is there already may stand where nothing may be made.
      await keeper.operate(this.create(path), CODE.nodeExists, CODE.noAuth);
      if (at < 0) break;
    }
    const { results } = await keeper.multi([
      this.create(this.#format, Buffer.from(`${FORMAT}`)),
      this.create(this.floor, FIRST_FLOOR),
      ...[this.keys, this.sessions, this.opened, this.inboxes, this.#guards].map((path) => this.create(path)),
      ...Array.from({ length: GUARDS }, (_, guard) => this.create(this.guard(guard))),
    ]);
    const failed = results.find(({ code }) => code !== CODE.ok);
    if (failed !== undefined && failed.code !== CODE.nodeExists) throw refused(failed.code);
  }
}

/** The number of the guard that a key belongs to (FNV-1a of its bytes). */
export function guardOf(key: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(key)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0) % GUARDS;
}
