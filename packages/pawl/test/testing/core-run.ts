import type { AcquireCommand, Grant } from '../../src/core/commands.ts';
import type { Holder, Mode } from '../../src/core/records.ts';
import type { AcquireOperation, Operation } from '../../src/testing/index.ts';
import { acquire, release } from '../core/commands.ts';
import { World } from '../core/world.ts';
import type { Step } from './core-steps.ts';

export type Shape = 'readers and writers' | 'several locks' | 'lock-delay' | 'slots' | 'barging';

/** What the core's record of a lock said between two steps. */
export interface Moment {
  readonly atMs: number;
  readonly lock: string;
  readonly holders: readonly Holder[];
  readonly waiting: number;
  /** How many sessions have ended and are not all buried. */
  readonly unburied: number;
}

export const PERMITS = 3;
const STEP_MS = 10;

interface Asked {
  readonly command: AcquireCommand;
  readonly client: string;
  readonly calledAtMs: number;
  readonly isLost: boolean;
  /** It does not hear that it was let in, so that it times out and gives that back. */
  readonly isDeaf: boolean;
}

interface Held extends Pick<Asked, 'command' | 'client'> {
  readonly grants: readonly Grant[];
  readonly isKnown: boolean;
}

/** Ended, and not yet all freed. */
interface Grave {
  session: string;
  readonly calledAtMs: number;
  readonly isLost: boolean;
  /** Waiting acquires of it, whose clients gave up. */
  readonly waiting: readonly Asked[];
  ghosts: readonly string[] | undefined;
}

export interface RunOptions {
  readonly shape: Shape;
  /** Calls and returns differ from the moment of the effect by at most so many ms. */
  readonly delayMs: number;
  /** Whether replies get lost, and sessions end while they wait. If not, every outcome is known. */
  readonly losses: boolean;
}

/** Asks the real core one thing every tenth ms, and notes what clients see of it: a history that is linearizable. */
export class CoreRun {
  readonly operations: Operation[] = [];
  readonly moments: Moment[] = [];
  readonly #options: RunOptions;
  readonly #world = new World({ headWindow: 2 });
  readonly #generations = [0, 0, 0, 0, 0];
  readonly #waiting: Asked[] = [];
  readonly #held: Held[] = [];
  readonly #graves: Grave[] = [];
  #atMs = 0;
  #count = 0;

  constructor(options: RunOptions, all: readonly Step[]) {
    this.#options = options;
    this.#generations.forEach((_, client) => {
      this.#world.openSession(this.#session(client), 1e9);
    });
    // So that there is room below the first token.
    for (const request of ['first', 'second', 'third']) {
      this.#world.run(acquire(this.#session(0), request, 'z'));
      this.#world.run(release(this.#world, this.#session(0), request));
    }
    for (const one of all) {
      this.#atMs += STEP_MS;
      this.#play(one);
      this.#noteGrants(one);
      this.#noteMoments();
    }
    if (!options.losses) this.#finish();
    for (const asked of this.#waiting)
      this.#noteAcquire(asked, asked.command.locks[0]?.name, 'unknown', Infinity);
    for (const grave of this.#graves) this.#noteEnd(grave, Infinity);
  }

  /** Everybody gives up, and whoever has ended is buried. */
  #finish(): void {
    const last = { action: 'timeOut', client: 0, pick: 0, early: 0, late: 0, isLost: false } as const;
    while (this.#waiting.length + this.#graves.length > 0) {
      this.#atMs += STEP_MS;
      this.#play({ ...last, action: this.#waiting.length > 0 ? 'timeOut' : 'bury' });
      this.#noteGrants(last);
    }
  }

  #session(client: number): string {
    return `${client}.${this.#generations[client]}`;
  }

  #calledAtMs({ early }: Step): number {
    return this.#atMs - (early / 100) * this.#options.delayMs;
  }

  #returnedAtMs({ late }: Step): number {
    return this.#atMs + (late / 100) * this.#options.delayMs;
  }

  #play(one: Step): void {
    switch (one.action) {
      case 'try':
      case 'wait':
        this.#acquire(one);
        break;
      case 'release':
      case 'lateRelease':
        this.#release(one);
        break;
      case 'timeOut':
        this.#timeOut(one);
        break;
      case 'claim': {
        const claiming = this.#waiting[one.pick % Math.max(1, this.#waiting.length)];
        if (claiming !== undefined) this.#world.run(claiming.command);
        break;
      }
      case 'end':
        this.#end(one);
        break;
      case 'bury':
        this.#bury(one);
    }
  }

  #acquire(one: Step): void {
    const { shape, losses } = this.#options;
    const mode: Mode =
      one.pick % 2 === 0 && shape !== 'slots' && shape !== 'barging' ? 'shared' : 'exclusive';
    const names =
      shape !== 'several locks' || one.pick % 3 > 0 ? [['x', 'y'][one.pick % 3] ?? 'x'] : ['x', 'y'];
    const locks = shape === 'several locks' ? names : ['x'];
    const command = acquire(
      this.#session(one.client),
      `r${this.#count++}`,
      locks.map((name) => ({ name, mode, permits: shape === 'slots' ? PERMITS : null })),
      {
        wait: one.action === 'wait',
        barging: shape === 'barging',
        lockDelayMs: shape === 'lock-delay' ? 1000 : 0,
      },
    );
    const isLost = losses && one.isLost;
    const isDeaf = losses && !isLost && one.late > 60;
    const client = `client ${one.client}`;
    const asked = { command, client, calledAtMs: this.#calledAtMs(one), isLost, isDeaf };
    const outcome = this.#world.run(command);
    if (outcome.kind === 'granted') this.#granted(asked, outcome.grants, this.#returnedAtMs(one));
    else if (outcome.kind === 'queued') this.#waiting.push(asked);
    else if (outcome.kind === 'held')
      this.#noteAcquire(asked, outcome.name, 'refused', this.#returnedAtMs(one));
  }

  #granted(asked: Asked, grants: readonly Grant[], returnedAtMs: number): void {
    const { command, client, isLost } = asked;
    this.#held.push({ command, client, grants, isKnown: !isLost });
    for (const { name, token, slot } of grants) {
      this.#noteAcquire(asked, name, token ?? 'unknown', returnedAtMs, slot);
    }
  }

  #noteAcquire(
    { command, client, calledAtMs, isLost }: Asked,
    lock = 'x',
    answer: AcquireOperation['reply'],
    returnedAtMs: number,
    slot = 0,
  ): void {
    const { session, wait: waits, barging, locks } = command;
    const asked = locks.find(({ name }) => name === lock);
    const reply = isLost ? 'unknown' : answer;
    const several = locks.length > 1;
    const semaphore =
      asked?.permits == null
        ? {}
        : { permits: asked.permits, ...(typeof reply === 'bigint' ? { slot } : {}) };
    const mode = asked?.mode ?? 'exclusive';
    const about = { client, lock, session, mode, waits, barging, several, ...semaphore };
    const until = isLost ? Infinity : returnedAtMs;
    this.operations.push({ kind: 'acquire', ...about, reply, calledAtMs, returnedAtMs: until });
    // An answer that was lost is lost for all locks.
    if (answer !== 'unknown' || !several) return;
    for (const { name } of locks.slice(1)) {
      this.operations.push({ kind: 'acquire', ...about, lock: name, reply, calledAtMs, returnedAtMs: until });
    }
  }

  #release(one: Step): void {
    const isLate = ({ command }: Held) => !this.#world.isAlive(command.session);
    const choices = one.action === 'lateRelease' ? this.#held.filter(isLate) : this.#held;
    const held = choices[one.pick % Math.max(1, choices.length)];
    if (held === undefined) return;
    this.#held.splice(this.#held.indexOf(held), 1);
    const { command, client, grants, isKnown } = held;
    const { session, request } = command;
    const names = grants.map(({ name }) => name);
    const tokens = grants.map(({ token }) => token ?? 0n);
    const outcome = this.#world.run({ kind: 'release', session, request, names, tokens, forget: false });
    const isLost = this.#options.losses && one.isLost;
    const reply = isLost ? 'unknown' : outcome.kind === 'released' ? 'released' : 'notHeld';
    const calledAtMs = this.#calledAtMs(one);
    const returnedAtMs = isLost ? Infinity : this.#returnedAtMs(one);
    for (const [i, lock] of names.entries()) {
      const token = isKnown ? (tokens[i] ?? 0n) : 'unknown';
      const slot = isKnown && this.#options.shape === 'slots' ? { slot: grants[i]?.slot ?? 0 } : {};
      const about = { lock, session, client, token, ...slot, reply } as const;
      this.operations.push({ kind: 'release', ...about, calledAtMs, returnedAtMs });
    }
  }

  #timeOut(one: Step): void {
    const [asked] = this.#waiting.splice(one.pick % Math.max(1, this.#waiting.length), 1);
    if (asked === undefined) return;
    const { session, request, locks } = asked.command;
    const names = locks.map(({ name }) => name);
    this.#world.run({ kind: 'cancel', session, request, names, inbox: 'inbox', forget: true });
    for (const name of names) this.#noteAcquire(asked, name, 'refused', this.#returnedAtMs(one));
  }

  #end(one: Step): void {
    const session = this.#session(one.client);
    const waiting = this.#waiting.filter(({ command }) => command.session === session);
    if (waiting.length > 0 && !this.#options.losses) return;
    this.#world.store.endSession(session);
    for (const each of waiting) this.#waiting.splice(this.#waiting.indexOf(each), 1);
    const isLost = this.#options.losses && one.isLost;
    this.#graves.push({ session, calledAtMs: this.#calledAtMs(one), isLost, waiting, ghosts: undefined });
    this.#generations[one.client] = (this.#generations[one.client] ?? 0) + 1;
    this.#world.openSession(this.#session(one.client), 1e9);
  }

  /** First what the session has, which may leave ghosts; then those. */
  #bury(one: Step): void {
    const [grave] = this.#graves;
    if (grave === undefined) return;
    if (grave.ghosts === undefined) {
      this.#world.bury(grave.session);
      const holders = ['x', 'y'].flatMap((name) => this.#world.lock(name)?.holders ?? []);
      const ghosts = holders.map(({ session }) => session);
      grave.ghosts = ghosts.filter((ghost) => ghost.startsWith(`ghost-${grave.session}-`));
    } else {
      for (const ghost of grave.ghosts) {
        this.#world.store.endSession(ghost);
        this.#world.bury(ghost);
      }
      grave.ghosts = [];
    }
    if (grave.ghosts.length > 0) return;
    this.#graves.shift();
    this.#noteEnd(grave, this.#returnedAtMs(one));
  }

  #noteEnd({ session, calledAtMs, isLost, waiting }: Grave, returnedAtMs: number): void {
    const until = isLost ? Infinity : returnedAtMs;
    this.operations.push({ kind: 'end', session, client: 'engine', calledAtMs, returnedAtMs: until });
    for (const asked of waiting) this.#noteAcquire(asked, asked.command.locks[0]?.name, 'unknown', until);
  }

  /** Whoever waited and holds now. */
  #noteGrants(one: Step): void {
    for (const asked of [...this.#waiting]) {
      const { session, request, locks } = asked.command;
      if (asked.isDeaf || this.#world.request(asked.command)?.state !== 'held') continue;
      this.#waiting.splice(this.#waiting.indexOf(asked), 1);
      const grants = locks.flatMap(({ name }) => {
        const holders = this.#world.lock(name)?.holders ?? [];
        const own = holders.find((each) => each.session === session && each.request === request);
        return own === undefined ? [] : [{ name, mode: own.mode, slot: own.slot, token: own.token }];
      });
      this.#granted(asked, grants, this.#returnedAtMs(one));
    }
  }

  #noteMoments(): void {
    for (const lock of ['x', 'y']) {
      const record = this.#world.lock(lock);
      this.moments.push({
        atMs: this.#atMs + STEP_MS / 2,
        lock,
        holders: record?.holders ?? [],
        waiting: record?.waiting ?? 0,
        unburied: this.#graves.length,
      });
    }
  }
}
