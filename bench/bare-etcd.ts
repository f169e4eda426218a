import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CommitResult, ConditionalWrite, Engine, Version } from '../packages/pawl/src/engines/engine.ts';
import { etcdEngine } from '../packages/pawl/src/engines/etcd/index.ts';
import { RETRY_MS } from '../packages/pawl/src/lab/torture/peers/peer.ts';
import type { Contestant } from './contestant.ts';

/** Longer than anything is measured, in ms: nobody keeps the session alive. */
const SESSION_MS = 3_600_000;
const LOCK_ROW = 'x'.repeat(330);
const REQUEST_ROW = 'x'.repeat(165);

/**
 * etcd fed with the writes of acquires and releases, and nothing decided: what an engine on etcd comes to at best that writes a lock's
 * record, and, of two rows, one of the request.
 */
export function bareEtcd(name: string, endpoints: readonly string[], rows: 1 | 2): Contestant {
  return {
    name,
    kind: 'peer',
    waits: `cannot; the bench retries every ${RETRY_MS} ms`,
    connect: async () => {
      const engine = await etcdEngine({ endpoints, prefix: name });
      const session = randomUUID();
      await engine.openSession(session, SESSION_MS);
      const feed = new Feed(engine);
      const commit = (
        keys: readonly string[],
        version: Version | null,
        change: Pick<ConditionalWrite, 'puts' | 'deletes'>,
      ) =>
        feed.commit({
          guards: keys.map((key) => ({ key, version })),
          alive: [session],
          wakes: [],
          ...change,
        });
      return {
        acquire: async (lock) => {
          const keys = [`lock/${lock}`, `req/${session}/${randomUUID()}`].slice(0, rows);
          const values = [LOCK_ROW, REQUEST_ROW];
          const puts = keys.map((key, i) => ({ key, value: values[i] ?? '' }));
          for (;;) {
            const taken = await commit(keys, null, { puts, deletes: [] });
            if (taken.kind === 'committed')
              return () => commit(keys, taken.version, { puts: [], deletes: keys });
            await sleep(RETRY_MS);
          }
        },
        close: () => engine.close(),
      };
    },
  };
}

/** What gathers while as many commits are under way as the engine gains from goes together. */
class Feed {
  readonly #engine: Engine;
  #gathered: { readonly write: ConditionalWrite; resolve(result: CommitResult): void }[] = [];
  #underWay = 0;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  commit(write: ConditionalWrite): Promise<CommitResult> {
    return new Promise((resolve) => {
      if (this.#gathered.push({ write, resolve }) === 1) queueMicrotask(() => void this.#pump());
    });
  }

  async #pump(): Promise<void> {
    const lanes = this.#engine.commitsAtOnce ?? 1;
    if (this.#underWay >= lanes || this.#gathered.length === 0) return;
    const some = this.#gathered.splice(0, Math.max(24, Math.ceil(this.#gathered.length / lanes)));
    this.#underWay += 1;
    if (this.#gathered.length > 0) void this.#pump();
    const results = await this.#engine.commit(some.map(({ write }) => write));
    this.#underWay -= 1;
    for (const [i, result] of results.entries()) some[i]?.resolve(result);
    void this.#pump();
  }
}
