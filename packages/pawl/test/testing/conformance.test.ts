import { describe, expect, it } from 'vitest';
import { SystemClock } from '../../src/clock.ts';
import type { Engine } from '../../src/engines/engine.ts';
import { runCheck } from '../../src/testing/conformance/index.ts';
import { conformanceChecks, MemoryStore, memoryEngine } from '../../src/testing/index.ts';

const TTL_MS = 100;
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Runs the check of that name in real time, on engines that `change` was applied to. */
async function judge(name: string, change: (engine: Engine) => Partial<Engine>): Promise<void> {
  const [, check] = conformanceChecks.find(([each]) => each === name) ?? [];
  if (check === undefined) throw new Error(`There is no check "${name}".`);
  await runCheck(check, {
    ttlMs: TTL_MS,
    start: async () => {
      const store = new MemoryStore();
      return {
        openEngine: async () => {
          const engine = memoryEngine({ store, clock: new SystemClock() });
          const changed = change(engine);
          return new Proxy(engine, {
            get: (target, key) => {
              const value = Reflect.get(changed, key) ?? Reflect.get(target, key);
              return typeof value === 'function' ? value.bind(target) : value;
            },
          });
        },
        passTime: sleep,
        stop: async () => {},
      };
    },
  });
}

/** Delays the `nth` call, by so much that a session of the first TTL runs out meanwhile. */
function late<A extends unknown[], R>(nth: number, call: (...args: A) => Promise<R>) {
  let calls = 0;
  return async (...args: A) => {
    calls += 1;
    if (calls === nth) await sleep(TTL_MS * 1.5);
    return call(...args);
  };
}

/** Engines on a machine that was too busy in the middle of one of their methods. */
const LATE: readonly ((engine: Engine) => Partial<Engine>)[] = [
  (engine) => ({ keepAlive: late(2, (ids) => engine.keepAlive(ids)) }),
  (engine) => ({ openSession: late(2, (id, ttlMs) => engine.openSession(id, ttlMs)) }),
  (engine) => ({ commit: late(1, (writes) => engine.commit(writes)) }),
];

describe('the conformance suite', () => {
  const lasting = [
    'a session lasts while it is kept alive, and its TTL starts anew each time',
    'opening a session again keeps it alive',
  ];
  for (const name of lasting) {
    it(`passes an engine that a busy machine kept from renewing in time: ${name}`, async () => {
      for (const delayed of LATE) await judge(name, delayed);
    });

    it(`S3: finds an engine whose sessions end before their TTL: ${name}`, async () => {
      const judged = judge(name, (engine) => ({
        openSession: (id, ttlMs) => engine.openSession(id, ttlMs / 4),
      }));
      await expect(judged).rejects.toThrow('before its TTL had passed');
    });
  }
});
