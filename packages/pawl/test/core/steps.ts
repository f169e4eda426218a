import fc from 'fast-check';
import type { AskedLock } from '../../src/core/commands.ts';
import { LAST_BREAK_PREFIX } from '../../src/core/names.ts';
import { acquire, cancel, release, tokenOf } from './commands.ts';
import { Violation, type Watcher } from './invariants.ts';
import type { World } from './world.ts';

const SESSIONS = ['s1', 's2', 's3', 's4'];
const TTL_MS = 1000;

/** One thing that happens. Indices choose among what there is at that time. */
export interface Step {
  readonly act:
    | 'acquire'
    | 'acquireAgain'
    | 'release'
    | 'releaseLate'
    | 'cancel'
    | 'break'
    | 'transfer'
    | 'end'
    | 'pass'
    | 'sweep'
    | 'claim'
    | 'together';
  readonly session: number;
  readonly lock: number;
  readonly shape: number;
  readonly pick: number;
  /** Whether another command comes between load and commit. */
  readonly race: boolean;
}

const shapes: readonly ((lock: number) => {
  locks: Partial<AskedLock>[];
  barging?: boolean;
  lockDelayMs?: number;
  wait?: boolean;
})[] = [
  (lock) => ({ locks: [{ name: `x${lock}` }] }),
  (lock) => ({ locks: [{ name: `x${lock}` }] }),
  (lock) => ({ locks: [{ name: `x${lock}` }], wait: false }),
  (lock) => ({ locks: [{ name: `x${lock}`, mode: 'shared' }] }),
  (lock) => ({ locks: [{ name: `x${lock}` }], barging: true }),
  (lock) => ({ locks: [{ name: `x${lock}` }], lockDelayMs: 300 }),
  (lock) => ({ locks: [{ name: `sem${lock}`, permits: 2 }] }),
  (lock) => ({ locks: [{ name: `x${lock}` }, { name: `x${(lock + 1) % 3}` }] }),
  (lock) => ({ locks: [{ name: 'x2' }, { name: `x${lock % 2}`, mode: 'shared' }] }),
];

export const step: fc.Arbitrary<Step> = fc.record({
  act: fc.oneof(
    { weight: 8, arbitrary: fc.constant('acquire' as const) },
    { weight: 5, arbitrary: fc.constant('release' as const) },
    { weight: 2, arbitrary: fc.constantFrom('acquireAgain' as const, 'cancel' as const, 'claim' as const) },
    { weight: 1, arbitrary: fc.constantFrom('break' as const, 'transfer' as const, 'releaseLate' as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('end' as const, 'pass' as const, 'sweep' as const, 'together' as const),
    },
  ),
  session: fc.nat(SESSIONS.length - 1),
  lock: fc.nat(2),
  shape: fc.nat(shapes.length - 1),
  pick: fc.nat(1000),
  race: fc.boolean(),
});

/** Carries steps out, with every request that was ever made in mind. */
export class Player {
  readonly #world: World;
  readonly #watcher: Watcher;
  readonly #requests: { session: string; request: string; command: ReturnType<typeof acquire> }[] = [];
  readonly #released: ReturnType<typeof release>[] = [];
  readonly #generation = new Map<string, number>();
  #count = 0;

  constructor(world: World, watcher: Watcher) {
    this.#world = world;
    this.#watcher = watcher;
    for (const session of SESSIONS) world.openSession(this.#sessionId(session), TTL_MS);
  }

  play(one: Step): void {
    const world = this.#world;
    const meanwhile = one.race
      ? () => this.#acquire({ ...one, session: (one.session + 1) % SESSIONS.length })
      : undefined;
    const known = this.#requests[one.pick % Math.max(1, this.#requests.length)];
    switch (one.act) {
      case 'acquire':
        this.#acquire(one, meanwhile);
        break;
      case 'acquireAgain':
      case 'claim':
        if (known !== undefined) this.#acquireAgain(known, meanwhile);
        break;
      case 'release':
        if (known !== undefined) {
          const command = release(world, known.session, known.request, one.pick % 2 === 0);
          const before = world.news.length;
          if (world.run(command, meanwhile).kind === 'released') {
            this.#released.push(command);
            // Who has a request forgotten promises not to repeat it.
            if (command.forget) this.#requests.splice(this.#requests.indexOf(known), 1);
          }
          this.#checkWakes(before, command.names.length);
        }
        break;
      case 'releaseLate': {
        const late = this.#released[one.pick % Math.max(1, this.#released.length)];
        if (late !== undefined && world.run(late).kind === 'released') {
          throw new Violation('S4: a grant was released twice');
        }
        break;
      }
      case 'cancel':
        if (known !== undefined) {
          world.run(cancel(world, known.session, known.request), meanwhile);
          const left = world.request(known);
          if (left !== undefined && left.state !== 'done' && world.isAlive(known.session))
            throw new Violation('S6: a cancelled request is still there');
        }
        break;
      case 'break':
        this.#break(one);
        break;
      case 'transfer':
        this.#transfer(one);
        this.#watcher.check(true);
        break;
      case 'end':
        world.store.endSession(this.#sessionId(SESSIONS[one.session] ?? ''));
        break;
      case 'pass':
        world.nowMs += one.pick;
        world.store.expire(world.nowMs);
        break;
      case 'sweep':
        this.sweep();
        break;
      case 'together':
        world.runAll(
          [0, 1, 2].map((i) => this.#newAcquire({ ...one, session: (one.session + i) % SESSIONS.length })),
        );
    }
    this.#watcher.check();
  }

  /** What nodes do all the time: keep live sessions alive, bury ended ones, open new ones in their place. */
  sweep(): void {
    const world = this.#world;
    for (const { key } of world.store.list('req/', 100_000)) {
      const session = key.split('/')[1] ?? '';
      if (!world.isAlive(session)) world.bury(session);
    }
    for (const session of SESSIONS) {
      const id = this.#sessionId(session);
      if (world.store.keepAlive([id], world.nowMs).size > 0) continue;
      this.#generation.set(session, (this.#generation.get(session) ?? 0) + 1);
      world.openSession(this.#sessionId(session), TTL_MS);
    }
  }

  /** All go on until nobody waits: whoever holds releases, whoever is first claims. No deadlock, no lost waiter. */
  settle(): void {
    const world = this.#world;
    for (let round = 0; ; round += 1) {
      world.nowMs += 301;
      world.store.expire(world.nowMs);
      this.sweep();
      const open = this.#requests.filter((each) => {
        const state = world.request(each)?.state;
        return state === 'waiting' || state === 'held';
      });
      this.#watcher.check();
      if (open.length === 0) break;
      if (round > 500) throw new Violation('no progress: some wait for ever');
      for (const each of open) {
        if (world.request(each)?.state === 'held') world.run(release(world, each.session, each.request));
        else world.run(each.command);
      }
    }
    // The last ghosts of lock-delays.
    world.nowMs += 301;
    world.store.expire(world.nowMs);
    this.sweep();
    this.#checkLeft(['lock/', 'wait/']);
    // What is remembered of requests and forced releases goes with their sessions.
    world.nowMs += TTL_MS;
    world.store.expire(world.nowMs);
    this.sweep();
    this.#checkLeft(['']);
  }

  #checkLeft(prefixes: readonly string[]): void {
    // What is told of a lock that was ever broken stays.
    const left = prefixes
      .flatMap((prefix) => this.#world.store.list(prefix, 100))
      .filter(({ key }) => !key.startsWith(LAST_BREAK_PREFIX));
    if (left.length > 0) throw new Violation(`S6: ${left.map(({ key }) => key)} was left behind`);
  }

  #acquire(one: Step, meanwhile?: () => void): void {
    this.#world.run(this.#newAcquire(one), meanwhile);
  }

  #newAcquire(one: Step) {
    const session = this.#sessionId(SESSIONS[one.session] ?? '');
    const { locks, ...settings } = shapes[one.shape]?.(one.lock) ?? { locks: [] };
    const distinct = locks.filter((lock, i) => locks.findIndex((other) => other.name === lock.name) === i);
    const command = acquire(session, `r${this.#count++}`, distinct, settings);
    this.#requests.push({ session, request: command.request, command });
    return command;
  }

  #acquireAgain(known: { command: ReturnType<typeof acquire> }, meanwhile?: () => void): void {
    const before = this.#world.request(known.command);
    const outcome = this.#world.run(known.command, meanwhile);
    if (before?.state === 'done' && outcome.kind === 'granted')
      throw new Violation('S5: a finished request was granted');
    if (before?.state === 'held' && meanwhile === undefined && outcome.kind === 'granted') {
      for (const { name, token } of outcome.grants) {
        if (tokenOf(this.#world, name, known.command.session, known.command.request) !== token) {
          throw new Violation('S5: a repeated acquire was told another token');
        }
      }
    }
  }

  #break(one: Step): void {
    const name = `x${one.lock}`;
    const holder = this.#world.lock(name)?.holders[0];
    if (holder?.token === undefined) return;
    const { session, request } = holder;
    const token = one.pick % 4 === 0 ? holder.token + 1n : holder.token;
    const outcome = this.#world.run({
      kind: 'break',
      session,
      request,
      name,
      token,
      reason: 'r',
      by: 'b',
      atMs: 0,
    });
    if ((outcome.kind === 'broken') !== (token === holder.token))
      throw new Violation('S4: the wrong grant was broken');
  }

  #transfer(one: Step): void {
    const known = this.#requests[one.pick % Math.max(1, this.#requests.length)];
    const state = known === undefined ? undefined : this.#world.request(known);
    if (known === undefined || state?.state !== 'held') return;
    const names = state.locks.map((lock) => lock.name);
    const tokens = names.map((name) => tokenOf(this.#world, name, known.session, known.request) ?? 1n);
    const to = { session: this.#sessionId(SESSIONS[one.session] ?? ''), request: `r${this.#count++}` };
    const { session, request } = known;
    const forget = one.shape % 2 === 0;
    const outcome = this.#world.run({
      kind: 'transfer',
      session,
      request,
      names,
      tokens,
      to,
      owner: {},
      inbox: 'inbox',
      forget,
    });
    if (outcome.kind === 'notHeld') return;
    if (forget) this.#requests.splice(this.#requests.indexOf(known), 1);
    this.#requests.push({ ...to, command: { ...known.command, ...to } });
    for (const [i, name] of names.entries()) {
      if (tokenOf(this.#world, name, to.session, to.request) !== tokens[i])
        throw new Violation('S1: a transfer changed the token');
    }
  }

  /** L3: a release lets one in, or a run of shared ones, for each lock it frees. */
  #checkWakes(before: number, locks: number): void {
    const woken = this.#world.news.slice(before);
    const alone = woken.filter(
      (news) => news.kind === 'claim' || (news.kind === 'granted' && news.grants[0]?.mode === 'exclusive'),
    );
    if (alone.length > locks)
      throw new Violation(`L3: one release woke ${alone.length} who cannot enter together`);
  }

  #sessionId(session: string): string {
    return `${session}-${this.#generation.get(session) ?? 0}`;
  }
}
