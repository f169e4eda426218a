import { type AddressInfo, connect, createServer } from 'node:net';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bearer } from '../../src/fences/bearer.ts';
import { MAX_TOKEN } from '../../src/fences/index.ts';
import { type RedisCommand, redisFence } from '../../src/fences/redis/index.ts';
import { haveRedis, RedisServer } from '../engines/redis-server.ts';
import { runDocumented } from '../engines/server-tools.ts';
import { fencedValue } from './fenced-value.ts';

const available = haveRedis();
const server = new RedisServer();
let redis: Redis;

beforeAll(async () => {
  if (!available) return;
  await server.start();
  redis = new Redis(server.port, '127.0.0.1');
}, 60_000);
afterAll(async () => {
  redis?.disconnect();
  await server.stop();
});
beforeEach(async () => {
  if (available) await redis.flushall();
});

const drivers = [
  ['ioredis', async () => redis],
  [
    'node-redis',
    async () => {
      const client = createClient({ socket: { port: server.port, host: '127.0.0.1' } });
      await client.connect();
      return client;
    },
  ],
] as const;

const stale = expect.objectContaining({ code: 'PAWL_STALE_TOKEN' });
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });
const set = (value: string | number): RedisCommand[] => [['SET', 'account', value]];

describe.skipIf(!available).each(drivers)('the fence in Redis, by %s', (_name, connect) => {
  let client: Awaited<ReturnType<typeof connect>>;
  beforeAll(async () => {
    client = await connect();
  });
  afterAll(() => {
    if ('destroy' in client) client.destroy();
  });

  fencedValue(async () => {
    await redis.flushall();
    const fence = redisFence(client);
    return {
      raise: (bearer) => fence.raise('account', bearer),
      write: async (bearer, value) => {
        await fence.commands('account', bearer, set(value));
      },
      read: async () => Number(await redis.get('account')),
    };
  });

  it('S7: refuses a lower token, accepts an equal and a higher one', async () => {
    const fence = redisFence(client);
    await fence.commands('account', 2n, set(100));
    await expect(fence.commands('account', 1n, set(200))).rejects.toThrow(stale);
    expect(await redis.get('account')).toBe('100');
    await fence.commands('account', 2n, set(150));
    await fence.commands('account', { token: 3n }, set(160));
    await expect(fence.raise('account', 2n)).rejects.toMatchObject({
      resource: 'account',
      token: 2n,
      highest: 3n,
    });
    expect(await redis.get('account')).toBe('160');
    expect(await fence.highest('account')).toBe(3n);
    expect(await fence.highest('other')).toBeUndefined();
  });

  it.each([
    ['no token', undefined, 'PAWL_MISSING_TOKEN'],
    ['a text', '3', 'PAWL_INVALID_TOKEN'],
    ['zero', 0n, 'PAWL_INVALID_TOKEN'],
  ])('S7: refuses %s, and nothing is written', async (_what, bearer, code) => {
    const fence = redisFence(client);
    await expect(fence.commands('account', bearer as Bearer, set(9))).rejects.toMatchObject({ code });
    expect(await redis.dbsize()).toBe(0);
  });

  it('S7: compares tokens that a number of Lua cannot tell apart, and of any length', async () => {
    const fence = redisFence(client);
    const tokens = [1n, 9n, 10n, 99n, 100n, 2n ** 53n, 2n ** 53n + 1n, MAX_TOKEN - 1n, MAX_TOKEN];
    for (const [i, token] of tokens.entries()) {
      await fence.raise('account', token);
      if (i > 0) await expect(fence.raise('account', tokens[i - 1])).rejects.toThrow(stale);
    }
    expect(await fence.highest('account')).toBe(MAX_TOKEN);
  });

  it('S8: after a raise, who read before it can no longer write', async () => {
    const fence = redisFence(client);
    await fence.commands('account', 1n, set(100));
    const late = Number(await redis.get('account'));
    await fence.raise('account', 2n);
    const seen = Number(await redis.get('account'));
    await expect(fence.commands('account', 1n, set(late + 1))).rejects.toThrow(stale);
    await fence.commands('account', 2n, set(seen + 10));
    expect(await redis.get('account')).toBe('110');
  });

  it('gives the answers of all commands, also of bytes and of what is not there', async () => {
    const fence = redisFence(client);
    const answers = await fence.commands('account', 1n, [
      ['SET', 'bytes', Buffer.from([0xff, 0x00, 0xfe])],
      ['GET', 'none'],
      ['RPUSH', 'list', 'a', 2],
      ['LRANGE', 'list', 0, -1],
      ['MGET', 'none', 'none'],
    ]);
    expect(answers).toEqual(['OK', null, 2, ['a', '2'], [null, null]]);
    expect([...((await redis.getBuffer('bytes')) ?? [])]).toEqual([0xff, 0x00, 0xfe]);
  });

  it('a command that fails is named, with what stays in effect; the token stays honoured', async () => {
    const fence = redisFence(client);
    await redis.set('account', 'text');
    const batch: RedisCommand[] = [
      ['SET', 'first', 1],
      ['INCR', 'account'],
      ['SET', 'third', 3],
    ];
    await expect(fence.commands('account', 5n, batch)).rejects.toMatchObject({
      code: 'PAWL_FENCED_COMMAND',
      index: 1,
      outcome: 'indefinite',
    });
    await expect(fence.commands('account', 5n, [['INCR', 'account']])).rejects.toMatchObject({
      index: 0,
      outcome: 'definite',
    });
    expect(await redis.mget('first', 'third')).toEqual(['1', null]);
    await expect(fence.raise('account', 4n)).rejects.toThrow(stale);
  });
});

describe.skipIf(!available)('the fence in Redis', () => {
  it('S7: fences resources one by one, whatever their names', async () => {
    const fence = redisFence(redis);
    const names = ['a', '{a}', 'a}', '{a', '{}', '{}a', 'x{a}', '*', ' ', '\n', '😀'];
    expect(new Set(names.map(fence.keyOf)).size).toBe(names.length);
    for (const [i, name] of names.entries()) await fence.raise(name, BigInt(i + 2));
    for (const [i, name] of names.entries()) {
      await expect(fence.raise(name, BigInt(i + 1))).rejects.toThrow(stale);
      await fence.raise(name, BigInt(i + 2));
    }
  });

  it('the program of the document does what it says', async () => {
    await redis.set('account:1', 100);
    expect(runDocumented('redis', { REDIS_URL: `redis://127.0.0.1:${server.port}` }, 'fences')).toBe(
      'balance 150\n',
    );
    expect(await redis.lrange('{account:1}:history', 0, -1)).toEqual(['+50']);
  });

  it('S7: a batch whose answer is lost runs once where ioredis is told not to repeat it, and its error says nothing of a stale token', async () => {
    let losing = false;
    const proxy = createServer((socket) => {
      const store = connect(server.port, '127.0.0.1');
      socket.on('data', (chunk) => store.write(chunk));
      store.on('data', (chunk) => (losing ? socket.destroy() : socket.write(chunk)));
      for (const each of [socket, store]) each.on('error', () => {});
      socket.on('close', () => store.destroy());
    });
    await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening));
    const cut = new Redis((proxy.address() as AddressInfo).port, '127.0.0.1', { maxRetriesPerRequest: 0 });
    cut.on('error', () => {});
    const fence = redisFence(cut);
    await fence.raise('account', 5n);
    losing = true;
    await expect(fence.commands('account', 5n, [['RPUSH', 'list', 'once']])).rejects.toMatchObject({
      name: 'MaxRetriesPerRequestError',
    });
    losing = false;
    cut.disconnect();
    proxy.close();
    expect(await redis.lrange('list', 0, -1)).toEqual(['once']);
  });

  it('S7: a prefix of ioredis stands before the key of the fence, and before no key of a batch', async () => {
    const own = new Redis(server.port, '127.0.0.1', { keyPrefix: 'app:' });
    const fence = redisFence(own);
    await fence.commands('account', 5n, [['SET', 'app:account', 1]]);
    expect(await fence.highest('account')).toBe(5n);
    await expect(fence.raise('account', 4n)).rejects.toThrow(stale);
    expect(await own.get('account')).toBe('1');
    expect((await redis.keys('*')).sort()).toEqual(['app:account', 'app:pawl-fence:{account}']);
    own.disconnect();
  });

  it('takes more commands than a function takes arguments, and no key for its own that holds no token', async () => {
    const fence = redisFence(redis);
    const many: RedisCommand[] = Array.from({ length: 50_000 }, () => ['INCR', 'account']);
    expect((await fence.commands('account', 5n, many)).at(-1)).toBe(50_000);
    await redis.set(fence.keyOf('other'), 'something else');
    await expect(fence.raise('other', 5n)).rejects.toMatchObject({
      code: 'PAWL_FENCE_USAGE',
      message: expect.stringContaining('is no token'),
    });
  });

  it('refuses what are no commands, and what is no client', async () => {
    const fence = redisFence(redis);
    for (const wrong of [
      'SET a b',
      ['SET'],
      [[]],
      [['SET', 'a', undefined]],
      [[5]],
      [Array(7001).fill('SET')],
    ]) {
      await expect(fence.commands('a', 1n, wrong as unknown as RedisCommand[])).rejects.toThrow(usage);
    }
    await expect(fence.raise('', 1n)).rejects.toThrow(usage);
    expect(() => redisFence({} as Redis)).toThrow(usage);
    expect(() => redisFence(redis, { prefix: '{x}' })).toThrow(usage);
    expect(await redis.dbsize()).toBe(0);
  });

  it('S7: refuses a bare token that jumps beyond the bound, at a new resource too', async () => {
    const fence = redisFence(redis, { maxJump: 100n });
    await expect(fence.raise('a', 101n)).rejects.toMatchObject({
      code: 'PAWL_TOKEN_JUMP',
      highest: undefined,
    });
    await fence.raise('a', 100n);
    await expect(fence.raise('a', 201n)).rejects.toMatchObject({ code: 'PAWL_TOKEN_JUMP', highest: 100n });
    await expect(fence.raise('a', 99n)).rejects.toThrow(stale);
    await fence.raise('a', 200n);
  });

  it('S7, S8: whatever stale and current writers do, no effect of a lower token lands after a higher one was honoured', async () => {
    const fence = redisFence(redis);
    const step = fc.record({ token: fc.bigInt({ min: 8n, max: 12n }), writes: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        await redis.flushall();
        // All at once: Redis sees them in some order, and the list says in which.
        await Promise.allSettled(
          steps.map(({ token, writes }) =>
            fence.commands('log', token, writes ? [['RPUSH', 'log', token.toString()]] : []),
          ),
        );
        const landed = (await redis.lrange('log', 0, -1)).map(BigInt);
        expect(landed).toEqual([...landed].sort((a, b) => Number(a - b)));
        const highest = steps.map(({ token }) => token).sort((a, b) => Number(b - a))[0];
        expect(await fence.highest('log')).toBe(highest);
      }),
      { numRuns: 50 },
    );
  });
});

describe.skipIf(!available)('the fence in a Redis cluster', () => {
  const node = new RedisServer();
  let cluster: Redis;
  beforeAll(async () => {
    await node.start(false, ['--cluster-enabled', 'yes', '--cluster-require-full-coverage', 'no']);
    cluster = new Redis(node.port, '127.0.0.1');
    // All slots but one, as if that one were on another node.
    const other = Number(await cluster.call('CLUSTER', 'KEYSLOT', 'another'));
    await cluster.call('CLUSTER', 'ADDSLOTSRANGE', 0, other - 1, other + 1, 16383);
    while (!String(await cluster.call('CLUSTER', 'INFO')).includes('cluster_state:ok')) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }, 60_000);
  afterAll(async () => {
    cluster?.disconnect();
    await node.stop();
  });

  it('keys with the name of the resource, or its hash tag, are in its slot; others are refused by name', async () => {
    const fence = redisFence(cluster);
    await fence.commands('account:1', 1n, [
      ['SET', 'account:1', 5],
      ['SET', '{account:1}:lines', 6],
    ]);
    await fence.commands('{acct}:1', 1n, [['SET', '{acct}:2', 5]]);
    await expect(fence.commands('account:1', 1n, [['SET', 'another', 5]])).rejects.toMatchObject({
      code: 'PAWL_FENCED_COMMAND',
      outcome: 'definite',
      message: expect.stringContaining('in the slot of the fence'),
    });
  });
});
