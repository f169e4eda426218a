import { describe, expect, it } from 'vitest';
import type { Wake } from '../../src/core/write.ts';
import type { CommitResult, ConditionalWrite, Engine } from '../../src/engines/engine.ts';
import { InvalidArgumentError } from '../../src/errors.ts';
import { Committer } from '../../src/node/committer.ts';
import { touchOf } from '../../src/node/grouping.ts';
import { LastKnown } from '../../src/node/last-known.ts';
import { granted, NodeSetup, newRequest } from './setup.ts';

const EXCLUSIVE = { mode: 'exclusive', permits: null } as const;
const X = [{ name: 'x', ...EXCLUSIVE }] as const;

/** The same engine with some of its methods and properties replaced. */
function changed(engine: Engine, changes: Partial<Engine>): Engine {
  return new Proxy(engine, {
    get(target, property) {
      if (property in changes) return Reflect.get(changes, property);
      const value = Reflect.get(target, property, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('a node whose engine does not do as it should', () => {
  it('S3: a session that ended as it was opened is reported, and not handed out', async () => {
    const setup = new NodeSetup(undefined, {}, (engine) =>
      changed(engine, { openSession: async () => false }),
    );
    await expect(setup.openSession()).rejects.toMatchObject({ code: 'PAWL_SESSION_ENDED' });
  });

  it('L5: an engine that answers nothing but conflicts is given up, and the lock was surely not taken', async () => {
    let conflicts = 0;
    const always = async (batch: readonly ConditionalWrite[]): Promise<CommitResult[]> =>
      batch.map(() => {
        conflicts += 1;
        return { kind: 'conflict', keys: [] };
      });
    const setup = new NodeSetup(undefined, {}, (engine) => changed(engine, { commit: always }));
    const session = await setup.openSession();
    const answer = setup.acquire(session, 'x').catch((error: unknown) => error);
    await setup.time.advance(20_000);
    expect(await answer).toMatchObject({ code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' });
    expect(conflicts).toBeGreaterThan(100);
    expect((await setup.node.inspect('x')).holders).toEqual([]);
  });

  it('L3: news that cannot be read is made up for by the poll', async () => {
    const spoil = (wake: Wake): Wake => ({ ...wake, message: '{"kind":' });
    const setup = new NodeSetup(undefined, {}, (engine) =>
      changed(engine, {
        commit: (batch) => engine.commit(batch.map((write) => ({ ...write, wakes: write.wakes.map(spoil) }))),
      }),
    );
    const session = await setup.openSession();
    const first = newRequest(session);
    const grant = granted(await setup.acquireAs(first, X));
    const heard: string[] = [];
    setup.node.listen(session, (event) => heard.push(event.kind));
    expect((await setup.acquire(session, 'x', true)).kind).toBe('queued');
    await setup.node.release(first, [grant], true);
    await setup.time.advance(1);
    expect(heard).toEqual([]);
    await setup.time.advance(600);
    expect(heard).toEqual(['granted']);
  });

  it('S6: a commit that failed fails those in it, and nobody who was to ride on the next', async () => {
    const setup = new NodeSetup(undefined, {}, (engine) => changed(engine, { maxGuards: 8 }));
    const session = await setup.openSession();
    // The guess that the lock is idle meets a conflict, after which the store is read and its limit counts.
    await setup.engine.commit([
      { guards: [], alive: [], puts: [{ key: 'lock/x', value: HELD_LOCK }], deletes: [], wakes: [] },
    ]);
    expect((await setup.acquire(session, 'x', true)).kind).toBe('queued');
    setup.faults.failNext('commit', { kind: 'refused' });
    const answers = await Promise.allSettled(
      Array.from({ length: 40 }, () => setup.acquire(session, 'x', true)),
    );
    const failed = answers.filter(({ status }) => status === 'rejected');
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.length).toBeLessThan(40);
    for (const answer of failed)
      expect(answer).toMatchObject({ reason: { code: 'PAWL_ENGINE_UNAVAILABLE' } });
    expect((await setup.node.inspect('x')).waiting).toBe(1 + 40 - failed.length);
  });

  it('L1: an ended session whose burial failed is buried as soon as it is in somebody’s way', async () => {
    const setup = new NodeSetup();
    const [holder, dead, next] = [
      await setup.openSession(),
      await setup.openSession(),
      await setup.openSession(),
    ];
    const first = newRequest(holder);
    const grant = granted(await setup.acquireAs(first, X));
    await setup.acquire(dead, 'x', true);
    await setup.acquire(next, 'x', true);
    const heard: string[] = [];
    setup.node.listen(next, (event) => heard.push(event.kind));
    setup.faults.failNext('list', { kind: 'refused' });
    await setup.engine.endSession(dead);
    await setup.time.advance(300);
    expect((await setup.node.inspect('x')).waiting).toBe(2);
    await setup.node.release(first, [grant], true);
    await setup.time.advance(1);
    expect(heard).toEqual(['granted']);
    expect((await setup.node.inspect('x')).waiting).toBe(0);
  });

  it('L3: a store that takes only small queries is asked for less at once, by commands and by the poll', async () => {
    const setup = new NodeSetup(undefined, {}, (engine) =>
      changed(engine, {
        read: async (query) => {
          const parts = query.keys.length + query.ranges.length;
          if (parts > 20) throw new InvalidArgumentError('query', 'at most 20 parts', parts);
          return engine.read(query);
        },
      }),
    );
    const [holder, waiter] = [await setup.openSession(), await setup.openSession()];
    const locks = Array.from({ length: 40 }, (_, i) => [{ name: `x${i}`, ...EXCLUSIVE }]);
    const acquireAll = (session: string) =>
      Promise.all(locks.map((asked, i) => setup.acquireAs({ session, request: `r${i}` }, asked, true)));
    const held = await acquireAll(holder);
    expect((await acquireAll(waiter)).map(({ kind }) => kind)).toEqual(locks.map(() => 'queued'));
    expect(await setup.node.list('', 100)).toHaveLength(40);
    setup.faults.onWake = () => 0;
    let heard = 0;
    setup.node.listen(waiter, () => {
      heard += 1;
    });
    const releases = held.map((answer, i) =>
      setup.node.release({ session: holder, request: `r${i}` }, [granted(answer)], true),
    );
    await Promise.all(releases);
    await setup.time.advance(600);
    expect(heard).toBe(40);
  });

  it('S6: a write that is too large for the store fails, and none that came with it', async () => {
    const setup = new NodeSetup(undefined, {}, (engine) =>
      changed(engine, {
        commit: async (batch) => {
          const longest = Math.max(...batch.flatMap(({ puts }) => puts.map(({ value }) => value.length)));
          if (longest > 1000) throw new InvalidArgumentError('write', 'at most 1000 characters', longest);
          return engine.commit(batch);
        },
      }),
    );
    const session = await setup.openSession();
    const names = Array.from({ length: 20 }, (_, i) => `x${i}`);
    const answers = await Promise.allSettled(
      names.map((name) => {
        const owner = name === 'x7' ? { note: 'long'.repeat(250) } : {};
        const settings = { wait: false, owner, lockDelayMs: 0, barging: false };
        return setup.node.acquire(newRequest(session), [{ name, ...EXCLUSIVE }], settings);
      }),
    );
    const failed = answers.filter(({ status }) => status === 'rejected');
    expect(failed).toMatchObject([{ reason: { code: 'PAWL_INVALID_ARGUMENT' } }]);
    expect((await setup.node.list('', 100)).map(({ name }) => name).sort()).toEqual(
      names.filter((name) => name !== 'x7').sort(),
    );
  });

  it('L1: a lock-delay that is over before its ghost could be written keeps nobody out', async () => {
    const setup = new NodeSetup();
    const [dead, next] = [await setup.openSession(), await setup.openSession()];
    const settings = { wait: false, owner: {}, lockDelayMs: 50, barging: false };
    granted(await setup.node.acquire(newRequest(dead), X, settings));
    const heard: string[] = [];
    setup.node.listen(next, (event) => heard.push(event.kind));
    await setup.acquire(next, 'x', true);
    setup.faults.onCall = (method) => (method === 'commit' ? { delayMs: 100 } : undefined);
    await setup.engine.endSession(dead);
    await setup.time.advance(500);
    expect(heard).toEqual(['granted']);
  });

  it('S6: a cancel finds all that its acquire queued for, also locks that it does not name', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    const id = newRequest(session);
    await setup.acquireAs(id, [
      { name: 'x', ...EXCLUSIVE },
      { name: 'y', ...EXCLUSIVE },
    ]);
    expect(await setup.node.cancel(id, ['x'], true)).toEqual({ kind: 'cancelled', wasGranted: true });
    for (const name of ['x', 'y']) expect((await setup.node.inspect(name)).holders).toEqual([]);
  });

  it('polls no more once nobody waits, also where the last went while it looked', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    await setup.acquire(session, 'x');
    const waiter = newRequest(session);
    await setup.acquireAs(waiter, X, true);
    setup.faults.failNext('read', { replyDelayMs: 100 });
    await setup.time.advance(550);
    await setup.node.cancel(waiter, ['x'], true);
    await setup.time.advance(200);
    setup.callsOf('read');
    await setup.time.advance(5000);
    expect(setup.callsOf('read')).toBe(0);
  });

  it('after its close it answers nothing more, and says so', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    await setup.node.close();
    await expect(setup.acquire(session, 'x')).rejects.toMatchObject({ code: 'PAWL_CLOSED' });
  });
});

/** A lock that another node's client holds. */
const HELD_LOCK = JSON.stringify({
  permits: null,
  holders: [
    {
      session: 's',
      request: 'r',
      mode: 'exclusive',
      slot: 0,
      owner: {},
      inbox: '',
      lockDelayMs: 0,
      ghost: false,
    },
  ],
  nextTicket: 0,
  waiting: 0,
  nextShared: 0,
});

describe('what a node remembers is bounded', () => {
  it('S3: an ended session that dropped out of memory is found to have ended once more', async () => {
    const setup = new NodeSetup();
    const told: string[] = [];
    const committer = new Committer({
      engine: setup.engine,
      clock: setup.time.clock(),
      maxWaiters: 10,
      onEnded: (sessions) => told.push(...sessions),
    });
    const oldest = await setup.openSession();
    await setup.engine.endSession(oldest);
    for (const session of [oldest, ...Array.from({ length: 10_000 }, (_, i) => `s${i}`)])
      committer.noteEnded(session);
    const settings = { wait: false, owner: {}, inbox: '', lockDelayMs: 0, barging: false };
    const acquire = async (session: string) =>
      (await committer.submit({ kind: 'acquire', ...newRequest(session), locks: X, ...settings })).outcome
        .kind;
    expect(await acquire('s9999')).toBe('sessionEnded');
    expect(told).toEqual([]);
    expect(await acquire(oldest)).toBe('sessionEnded');
    expect(told).toEqual([oldest]);
  });

  it('of more locks than it remembers, the oldest are read again and the newest are not', () => {
    const known = new LastKnown(16);
    const record = { permits: null, holders: [], nextTicket: 1, waiting: 0, nextShared: 0 };
    for (let i = 0; i <= 10_000; i += 1) {
      const lock = { version: BigInt(i), record, head: [] };
      known.note({ locks: new Map([[`lock-${i}`, lock]]), requests: new Map() });
    }
    const recalled = (name: string) => {
      const command = { kind: 'promote', name } as const;
      return known.recall([{ command, touch: touchOf(command) }])?.locks.get(name)?.version;
    };
    expect(recalled('lock-0')).toBeUndefined();
    expect(recalled('lock-1')).toBe(1n);
    expect(recalled('lock-10000')).toBe(10_000n);
  });
});

describe('a node that signs', () => {
  it('signs each grant, those that are heard of as news too', async () => {
    const setup = new NodeSetup(undefined, { sign: ({ lock, token }) => `${lock} at ${token}` });
    const session = await setup.openSession();
    const first = newRequest(session);
    const grant = granted(await setup.acquireAs(first, X));
    expect(grant.sequencer).toBe(`x at ${grant.token}`);
    const heard: unknown[] = [];
    setup.node.listen(session, (event) => heard.push(event));
    await setup.acquire(session, 'x', true);
    await setup.node.release(first, [grant], true);
    await setup.time.advance(1);
    expect(heard).toEqual([expect.objectContaining({ kind: 'granted' })]);
    const [next] = (heard[0] as { grants: { token: bigint; sequencer?: string }[] }).grants;
    expect(next?.sequencer).toBe(`x at ${next?.token}`);
    expect(next?.token).toBeGreaterThan(grant.token);
  });
});
