import { describe, expect, it } from 'vitest';
import { granted, NodeSetup, newRequest } from './setup.ts';

const X = [{ name: 'x', mode: 'exclusive', permits: null }] as const;

/** Two nodes over one store, and at the first a session with a waiter for a lock that another session holds. */
async function waiting() {
  const one = new NodeSetup();
  const other = new NodeSetup(one);
  const [holder, session] = [newRequest(await one.openSession()), await one.openSession()];
  const grant = granted(await one.acquireAs(holder, X));
  const heard: string[] = [];
  const unlisten = one.node.listen(session, (event) => heard.push(`one: ${event.kind}`));
  const listenElsewhere = () => other.node.listen(session, (event) => heard.push(`other: ${event.kind}`));
  const waiter = newRequest(session);
  expect((await one.acquireAs(waiter, X, true)).kind).toBe('queued');
  const release = () => one.node.release(holder, [grant], true);
  return { one, other, session, waiter, heard, unlisten, listenElsewhere, release };
}

/** How often a node asks the store in so much time that any poll for a waiter comes. */
async function looks(setup: NodeSetup): Promise<number> {
  await setup.time.advance(1000);
  setup.callsOf('read');
  await setup.time.advance(10_000);
  return setup.callsOf('read');
}

describe('a waiter whose session goes on at another node', () => {
  it('S6: is let go by the first node once it was cancelled elsewhere, and is told nothing', async () => {
    const { one, other, waiter, heard, release } = await waiting();
    expect(await looks(one)).toBeGreaterThan(0);
    expect((await other.node.cancel(waiter, ['x'], true)).kind).toBe('cancelled');
    expect(await looks(one)).toBe(0);
    await release();
    await one.time.advance(1000);
    expect(heard).toEqual([]);
    expect((await one.node.inspect('x')).holders).toEqual([]);
  });

  it('S6: is let go by both where it was asked for and cancelled at the other', async () => {
    const { one, other, waiter, heard, unlisten, listenElsewhere, release } = await waiting();
    unlisten();
    listenElsewhere();
    expect((await other.acquireAs(waiter, X, true)).kind).toBe('queued');
    expect([await looks(one), (await looks(other)) > 0]).toEqual([0, true]);
    await other.node.cancel(waiter, ['x'], true);
    expect([await looks(one), await looks(other)]).toEqual([0, 0]);
    await release();
    await one.time.advance(1000);
    expect(heard).toEqual([]);
    expect((await other.node.inspect('x')).holders).toEqual([]);
  });

  it('L3: waits on there in its place, and hears of its grant there only, also where its news get lost', async () => {
    for (const lost of [false, true]) {
      const { one, other, waiter, heard, unlisten, listenElsewhere, release } = await waiting();
      unlisten();
      listenElsewhere();
      await other.acquireAs(waiter, X, true);
      if (lost) for (const { faults } of [one, other]) faults.onWake = () => 0;
      await release();
      await one.time.advance(1000);
      expect(heard).toEqual(['other: granted']);
      const [holder] = (await one.node.inspect('x')).holders;
      expect(holder?.token).toBe(granted(await other.acquireAs(waiter, X, true)).token);
    }
  });

  it('L3: hears of its grant where it comes back to the first and asks again', async () => {
    const { one, session, waiter, heard, unlisten, release } = await waiting();
    unlisten();
    expect(await looks(one)).toBe(0);
    const stale = one.node.listen(session, () => {});
    one.node.listen(session, (event) => heard.push(event.kind));
    await one.acquireAs(waiter, X, true);
    // The end of a connection that was replaced long ago.
    stale();
    await release();
    await one.time.advance(1);
    expect(heard).toEqual(['granted']);
  });
});
