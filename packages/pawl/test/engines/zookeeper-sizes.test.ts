import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConditionalWrite } from '../../src/engines/engine.ts';
import { encodeMulti } from '../../src/engines/zookeeper/protocol.ts';
import { Wanted } from '../../src/engines/zookeeper/view.ts';
import { LockNode } from '../../src/node/lock-node.ts';
import { haveZooKeeper, MAX_TTL_MS, ZooKeeperStores } from './zookeeper-server.ts';

const stores = new ZooKeeperStores();

function write(parts: Partial<ConditionalWrite>): ConditionalWrite {
  return { guards: [], alive: [], puts: [], deletes: [], wakes: [], ...parts };
}

describe.skipIf(!haveZooKeeper())('ZooKeeper, which takes requests of 1 MiB', () => {
  beforeAll(() => stores.server.start(), 90_000);
  afterAll(() => stores.stop(), 60_000);

  it('a batch with a write that is too large does not happen, none of it', async () => {
    const engine = stores.openEngine(stores.newStore());
    const small = write({ puts: [{ key: 'a', value: '1' }] });
    const large = write({ puts: [{ key: 'b', value: 'x'.repeat(1_000_000) }] });
    await expect(engine.commit([small, large])).rejects.toMatchObject({ code: 'PAWL_INVALID_ARGUMENT' });
    expect((await engine.read({ keys: ['a', 'b'], ranges: [] })).entries.size).toBe(0);
  });

  it('320 locks whose names are as long as can be are acquired and listed at once', async () => {
    const engine = stores.openEngine(stores.newStore());
    const node = new LockNode(engine);
    const session = await node.openSession(MAX_TTL_MS);
    const acquires = Array.from({ length: 5 }, (_, n) => {
      const locks = Array.from({ length: 64 }, (_, i) => {
        return { name: `${'ж'.repeat(254)}${1000 + 64 * n + i}`, mode: 'exclusive', permits: null } as const;
      });
      const settings = { wait: false, owner: {}, lockDelayMs: 0, barging: false };
      return node.acquire({ session, request: `r${n}` }, locks, settings);
    });
    for (const { kind } of await Promise.all(acquires)) expect(kind).toBe('granted');
    expect(await node.list('ж', 1000)).toHaveLength(320);
    await node.close();
  }, 60_000);
});

describe('what is wanted of ZooKeeper', () => {
  it('is asked for in requests that it takes, each thing once', () => {
    const wanted = new Wanted();
    for (let i = 0; i < 1000; i += 1) wanted.data(`/${'x'.repeat(1500)}${i}`);
    expect(wanted.fits).toBe(false);
    const sizes: number[] = [];
    for (let asked = wanted.take(1000); asked.size > 0; asked = wanted.take(1000)) {
      expect(asked.fits).toBe(true);
      expect(encodeMulti(asked.operations()).length).toBeLessThan(1_000_000);
      sizes.push(asked.size);
    }
    expect(sizes).toHaveLength(2);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(1000);
  });
});
