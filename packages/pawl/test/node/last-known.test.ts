import { describe, expect, it } from 'vitest';
import { granted, NodeSetup, newRequest } from './setup.ts';

const EXCLUSIVE = { mode: 'exclusive', permits: null } as const;

describe('what a node knows without asking', () => {
  it('an acquire and a release of a lock that nobody else wants are a commit each, and no read', async () => {
    const one = new NodeSetup();
    const session = await one.openSession();
    let last = 0n;
    for (let i = 0; i < 5; i += 1) {
      const id = newRequest(session);
      const grant = granted(await one.acquireAs(id, [{ name: 'x', ...EXCLUSIVE }]));
      expect(grant.token).toBeGreaterThan(last);
      last = grant.token;
      await one.node.release(id, [grant], true);
      expect([one.callsOf('read'), one.callsOf('commit')]).toEqual([0, 2]);
    }
  });

  it('S2: what another node did meanwhile is noticed, whatever this one remembers', async () => {
    const one = new NodeSetup();
    const other = new NodeSetup(one);
    const [mine, yours] = [await one.openSession(), await other.openSession()];
    for (let i = 0; i < 40; i += 1) {
      const [holder, loser] = i % 3 === 0 ? [one, other] : [other, one];
      const [session, idle] = i % 3 === 0 ? [mine, yours] : [yours, mine];
      const id = newRequest(session);
      const grant = granted(await holder.acquireAs(id, [{ name: 'x', ...EXCLUSIVE }]));
      expect((await loser.acquire(idle, 'x')).kind).toBe('held');
      expect((await loser.node.inspect('x')).holders.map(({ token }) => token)).toEqual([grant.token]);
      await holder.node.release(id, [grant], true);
    }
  });

  it('S2: "held" is never answered from memory: a lock that another node freed is granted', async () => {
    const one = new NodeSetup();
    const other = new NodeSetup(one);
    const session = await one.openSession();
    const first = granted(await one.acquire(session, 'x'));
    await other.node.breakHold({ name: 'x', token: first.token }, 'to free it', 'the test');
    expect(granted(await one.acquire(session, 'x')).token).toBeGreaterThan(first.token);
  });

  it('S4: a release that goes by an outdated memory does not touch the next holder', async () => {
    const one = new NodeSetup();
    const other = new NodeSetup(one);
    const [mine, yours] = [await one.openSession(), await other.openSession()];
    const id = newRequest(mine);
    const first = granted(await one.acquireAs(id, [{ name: 'x', ...EXCLUSIVE }]));
    await other.node.breakHold({ name: 'x', token: first.token }, 'to free it', 'the test');
    const second = granted(await other.acquire(yours, 'x'));
    expect((await one.node.release(id, [first], true)).kind).not.toBe('released');
    expect((await one.node.inspect('x')).holders.map(({ token }) => token)).toEqual([second.token]);
  });

  it('S5: an acquire that was granted at another node is found again, not granted anew', async () => {
    const one = new NodeSetup();
    const other = new NodeSetup(one);
    const session = await one.openSession();
    const id = newRequest(session);
    const grant = granted(await one.acquireAs(id, [{ name: 'x', ...EXCLUSIVE }]));
    expect(granted(await other.acquireAs(id, [{ name: 'x', ...EXCLUSIVE }]))).toEqual(grant);
    await one.node.release(id, [grant], false);
    expect((await other.acquireAs(id, [{ name: 'x', ...EXCLUSIVE }])).kind).toBe('finished');
  });

  it('after a wrong guess a lock is read first for a while, so others’ locks cost no commits', async () => {
    const one = new NodeSetup();
    const other = new NodeSetup(one);
    const [mine, yours] = [await one.openSession(), await other.openSession()];
    granted(await other.acquire(yours, 'x'));
    one.callsOf('commit');
    for (let i = 0; i < 10; i += 1) expect((await one.acquire(mine, 'x')).kind).toBe('held');
    expect(one.callsOf('commit')).toBe(1);
  });
});
