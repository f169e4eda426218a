import { describe, expect, it } from 'vitest';
import type { AskedLock, RequestId } from '../../src/core/commands.ts';
import type { GrantedLock } from '../../src/node/service.ts';
import { NodeSetup, newRequest } from './setup.ts';

const TTL_MS = 10_000;
const EXCLUSIVE = { mode: 'exclusive', permits: null } as const;
const DELAY_MS = 500;

interface Held {
  readonly id: RequestId;
  readonly grants: readonly GrantedLock[];
}

/** A client of one session at one node, which others' nodes meddle with. */
class Client {
  readonly node: NodeSetup['node'];
  readonly session: string;
  readonly #operator: NodeSetup['node'];

  constructor(node: NodeSetup['node'], operator: NodeSetup['node'], session: string) {
    this.node = node;
    this.session = session;
    this.#operator = operator;
  }

  async hold(...locks: readonly (string | AskedLock)[]): Promise<Held> {
    const id = newRequest(this.session);
    const answer = await this.#acquire(id, locks, false);
    if (answer.kind !== 'granted') throw new Error(`It was to be granted, and was ${answer.kind}.`);
    return { id, grants: answer.grants };
  }

  async queue(...locks: readonly (string | AskedLock)[]): Promise<RequestId> {
    const id = newRequest(this.session);
    expect((await this.#acquire(id, locks, true)).kind).toBe('queued');
    return id;
  }

  async break({ grants }: Held, which = 0): Promise<void> {
    const { name, token, slot } = grants[which] ?? { name: '', token: 0n, slot: 0 };
    expect((await this.#operator.breakHold({ name, token, slot }, 'stuck', 'me')).kind).toBe('broken');
    expect((await this.node.inspect(name)).lastBreak).toMatchObject({ token, slot, reason: 'stuck' });
  }

  #acquire(id: RequestId, locks: readonly (string | AskedLock)[], wait: boolean) {
    const asked = locks.map((lock) => (typeof lock === 'string' ? { name: lock, ...EXCLUSIVE } : lock));
    return this.node.acquire(id, asked, { wait, owner: {}, lockDelayMs: DELAY_MS, barging: false });
  }
}

/** All ways in which a request leaves something to be remembered; names of locks begin with `at`. */
async function everything(client: Client, other: string, at: string): Promise<void> {
  const { node, session } = client;
  const name = (what: string) => `${at}-${what}`;
  for (const forget of [true, false]) {
    const { id, grants } = await client.hold(name('released'));
    await node.release(id, grants, forget);
    const held = await client.hold(name('cancelled'));
    await node.cancel(await client.queue(name('cancelled')), [name('cancelled')], forget);
    await node.cancel(newRequest(session), [name('never')], forget);
    await node.cancel(held.id, [name('cancelled')], forget);
    const moved = await client.hold(name(`moved-${forget}`));
    await node.transfer(moved.id, moved.grants, newRequest(other), {}, forget);
    // Of several locks one is broken, and then the request ends in each way.
    const rest = await client.hold(name('a'), name('b'));
    await client.break(rest);
    await node.release(rest.id, rest.grants, forget);
    const both = await client.hold(name('a'), name('b'));
    await client.break(both, 1);
    await node.cancel(both.id, [name('a'), name('b')], forget);
    const part = await client.hold(name(`c-${forget}`), name('d'));
    await client.break(part, 1);
    await node.transfer(part.id, part.grants.slice(0, 1), newRequest(other), {}, forget);
  }
  await client.break(await client.hold(name('broken')));
  await client.break(await client.hold(name('broken')));
  const all = await client.hold(name('e'), name('f'));
  await client.break(all, 0);
  await client.break(all, 1);
  const shared: AskedLock = { name: name('shared'), mode: 'shared', permits: null };
  await client.break(await client.hold(shared));
  const permit: AskedLock = { name: name('permits'), mode: 'exclusive', permits: 2 };
  await client.break(await client.hold(permit));
  // Held, waited for, and broken in part until the end.
  await client.break(await client.hold(name('g'), name('h')));
  await client.hold(name('held'));
  await client.queue(name('held'));
}

/** The keys that are left, but for what is told of a lock that was ever broken: one each, however often. */
function left({ store }: NodeSetup): string[] {
  return store
    .list('', 100)
    .map(({ key }) => key)
    .filter((key) => !key.startsWith('broken/'));
}

describe('what a session leaves in the store', () => {
  it.each(['closed', 'expired'] as const)(
    'S5, S6: is nothing once it was %s, whatever it did',
    async (how) => {
      const setup = new NodeSetup();
      const elsewhere = new NodeSetup(setup);
      for (let round = 0; round < 4; round += 1) {
        const [session, other] = [await setup.node.openSession(TTL_MS), await setup.node.openSession(TTL_MS)];
        await everything(new Client(setup.node, elsewhere.node, session), other, `${round}`);
        expect(setup.store.size).toBeGreaterThan(0);
        if (how === 'closed') for (const each of [session, other]) await setup.node.closeSession(each);
        else await setup.time.advance(TTL_MS);
        await setup.time.advance(DELAY_MS + 1000);
        expect(left(setup)).toEqual([]);
        expect(setup.store.sessionCount).toBe(0);
      }
    },
  );

  it('S5: of forced releases is remembered as long as it lives, by each grant', async () => {
    const setup = new NodeSetup();
    const [one, other] = [await setup.node.openSession(TTL_MS), await setup.node.openSession(TTL_MS)];
    const clients = [one, other].map((session) => new Client(setup.node, setup.node, session));
    const held: Held[] = [];
    for (const client of clients) {
      const each = await client.hold('x');
      await client.break(each);
      held.push(each);
    }
    const lastBreak = async () => (await setup.node.inspect('x')).lastBreak?.token;
    expect(await lastBreak()).toBe(held[1]?.grants[0]?.token);
    await setup.node.closeSession(other);
    // The later one does not take the earlier one with it.
    expect(setup.store.list('break/', 10)).toHaveLength(1);
    await setup.node.closeSession(one);
    expect(left(setup)).toEqual([]);
    // Who broke it last, and why, is told to whoever looks at it ever after.
    expect(await lastBreak()).toBe(held[1]?.grants[0]?.token);
    const after = new Client(setup.node, setup.node, await setup.node.openSession(TTL_MS));
    const newest = await after.hold('x');
    await after.break(newest);
    expect(await lastBreak()).toBe(newest.grants[0]?.token);
    expect(setup.store.list('broken/', 10)).toHaveLength(1);
  });

  it('S3: of a forced release is nothing where its session had ended before', async () => {
    const setup = new NodeSetup();
    const session = await setup.node.openSession(TTL_MS);
    const client = new Client(setup.node, setup.node, session);
    const held = [await client.hold('x'), await client.hold('y', 'z')];
    // Its burial cannot begin, so it still stands in the store as the holder.
    setup.faults.onCall = (method) => (method === 'list' ? { kind: 'refused' } : undefined);
    await setup.time.advance(TTL_MS + 1);
    for (const { grants } of held) {
      const [{ name, token } = { name: '', token: 0n }] = grants;
      expect((await setup.node.breakHold({ name, token }, 'stuck', 'me')).kind).toBe('broken');
    }
    expect(setup.store.list('break/', 10)).toEqual([]);
    setup.faults.onCall = undefined;
    await setup.time.advance(DELAY_MS + 10_000);
    expect(left(setup)).toEqual([]);
    expect((await setup.node.inspect('x')).lastBreak).toMatchObject({ reason: 'stuck' });
  });
});
