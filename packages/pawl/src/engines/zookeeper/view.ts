import type { Entry } from '../engine.ts';
import { unavailable } from './connection.ts';
import type { Floor } from './floor.ts';
import { LONGEST_REQUEST, refused } from './keeper.ts';
import {
  CODE,
  childrenOperation,
  dataOperation,
  HEAD_BYTES,
  type Operation,
  type PartResult,
} from './protocol.ts';

/** Nodes to read: each once, in the order in which they were first wanted. */
export class Wanted {
  readonly #operations = new Map<string, Operation>();

  get size(): number {
    return this.#operations.size;
  }

  data(path: string): void {
    const name = `d${path}`;
    if (!this.#operations.has(name)) this.#operations.set(name, dataOperation(path));
  }

  children(path: string): void {
    const name = `c${path}`;
    if (!this.#operations.has(name)) this.#operations.set(name, childrenOperation(path));
  }

  add(other: Wanted): void {
    for (const [name, operation] of other.#operations) this.#operations.set(name, operation);
  }

  /** Whether one request can ask for all of it. */
  get fits(): boolean {
    return this.#bytes <= LONGEST_REQUEST;
  }

  /** Takes out the first `limit`, or so many as fit into one request. */
  take(limit: number): Wanted {
    const taken = new Wanted();
    // The floor is read along with them.
    let bytes = LONGEST_REQUEST - 1000;
    for (const [name, operation] of this.#operations) {
      bytes -= HEAD_BYTES + operation.body.length;
      if (taken.size === limit || bytes < 0) break;
      taken.#operations.set(name, operation);
      this.#operations.delete(name);
    }
    return taken;
  }

  get #bytes(): number {
    let bytes = HEAD_BYTES;
    for (const { body } of this.#operations.values()) bytes += HEAD_BYTES + body.length;
    return bytes;
  }

  operations(): Operation[] {
    return [...this.#operations.values()];
  }

  /** Their answers, by the same names. */
  answers(results: readonly PartResult[]): Map<string, PartResult> {
    return new Map(
      [...this.#operations.keys()].map((name, i) => [name, results[i] ?? { code: CODE.noNode }]),
    );
  }
}

/** What was read of the tree. Everywhere `null` stands for what is not there, `undefined` for what was not read. */
export class View {
  readonly #entries = new Map<string, Omit<Entry, 'key'> | null>();
  readonly #dataVersions = new Map<string, number | null>();
  readonly #children = new Map<string, readonly string[] | null>();

  /** @param floor as it was in the same snapshot as the answers. @throws EngineUnavailableError where something may not be read. */
  add(answers: ReadonlyMap<string, PartResult>, floor: Floor): void {
    for (const [name, { code, data, stat, children }] of answers) {
      const path = name.slice(1);
      if (code !== CODE.ok && code !== CODE.noNode) throw refused(code);
      const isChildren = name.startsWith('c');
      if (code === CODE.ok && (isChildren ? children : stat) === undefined)
        throw unavailable(`it left out what is at ${path}`, 'definite');
      if (isChildren) {
        this.#children.set(path, children ?? null);
        continue;
      }
      this.#dataVersions.set(path, stat?.dataVersion ?? null);
      const there = data !== undefined && stat !== undefined;
      this.#entries.set(
        path,
        there ? { value: data.toString(), version: floor.versionOf(stat.modifiedZxid) } : null,
      );
    }
  }

  children(path: string): readonly string[] | null | undefined {
    return this.#children.get(path);
  }

  /** The entry at a path. */
  entry(path: string, key: string): Entry | null | undefined {
    const found = this.#entries.get(path);
    return found == null ? found : { key, ...found };
  }

  dataVersion(path: string): number | null | undefined {
    return this.#dataVersions.get(path);
  }
}
