import { randomInt } from 'node:crypto';
import { type Clock, sleep } from '../clock.ts';
import type { Command, Outcome, OutcomeOf } from '../core/commands.ts';
import { type Decision, decide } from '../core/decide.ts';
import type { Loaded, LoadedRequest, Surroundings } from '../core/draft.ts';
import type { CommitResult, Engine, Version } from '../engines/engine.ts';
import { ClosedError, EngineUnavailableError, InvalidArgumentError } from '../errors.ts';
import { CommandQueue } from './command-queue.ts';
import { groupByTouch, type Pending, type Touch, touchOf } from './grouping.ts';
import { LastKnown } from './last-known.ts';
import { load, type Reading, whyUnreadable } from './loading.ts';

/** An outcome, and the version of the commit that made it true (of no use where nothing was written). */
export interface Decided<O> {
  readonly outcome: O;
  readonly version: Version;
}

interface Submitted extends Pending {
  touch: Touch;
  attempts: number;
  resolve(decided: Decided<Outcome>): void;
  reject(error: unknown): void;
}

interface Plan {
  readonly group: Submitted[];
  readonly decision: Decision;
}

export interface CommitterOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly maxWaiters: number;
  /** Called with sessions that turned out to have ended, to have them buried. */
  readonly onEnded: (sessions: readonly string[]) => void;
}

/** So many commands go into one commit at most; the rest rides on the next. */
const BATCH_LIMIT = 512;
/** A batch beside another is worth its round trip from so many commands on. */
const LANE_FROM = 24;
/** So many first waiters of a queue are loaded: longer runs of shared waiters enter in several commits. */
const HEAD_WINDOW = 16;
/** So often a command is decided anew on conflicts before the node gives up. */
const ATTEMPT_LIMIT = 200;
/** From so many conflicts on, the node waits a little before it tries again. */
const PATIENCE = 3;
/** So many ended sessions are remembered; one that drops out is found to have ended once more. */
const ENDED_MEMORY = 10_000;

/**
 * Decides commands and commits them in groups: while one commit is under way the next commands gather, and then go
 * together in one round trip and one durable flush. Where the store gains by it, several commits are under way at once.
 */
export class Committer {
  readonly #options: CommitterOptions;
  readonly #maxGuards: number;
  readonly #ended = new Set<string>();
  readonly #surroundings: Surroundings;
  readonly #lastKnown = new LastKnown(HEAD_WINDOW);
  readonly #queue = new CommandQueue<Submitted>();
  #pumping = false;
  #closed = false;

  constructor(options: CommitterOptions) {
    this.#options = options;
    this.#maxGuards = options.engine.maxGuards ?? Number.POSITIVE_INFINITY;
    this.#surroundings = { ended: this.#ended, maxWaiters: options.maxWaiters };
  }

  /** Resolves once the outcome is committed. */
  submit<C extends Command>(command: C): Promise<Decided<OutcomeOf<C>>> {
    return new Promise<Decided<OutcomeOf<C>>>((resolve, reject) => {
      if (this.#closed) throw new ClosedError('The node');
      // The core answers each kind of command with its kind of outcome, which the queue's common type forgets.
      const settle = resolve as (decided: Decided<Outcome>) => void;
      this.#queue.add({ command, touch: touchOf(command), attempts: 0, resolve: settle, reject });
      this.#pumpSoon();
    });
  }

  /** Remembers that a session has ended: nothing is granted to it any more. */
  noteEnded(session: string): void {
    this.#ended.add(session);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= ENDED_MEMORY) break;
      this.#ended.delete(oldest);
    }
  }

  close(): void {
    this.#closed = true;
    for (const { reject } of this.#queue.drain()) reject(new ClosedError('The node'));
  }

  /** Whatever is submitted in the same turn goes together. */
  #pumpSoon(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    queueMicrotask(() => {
      this.#pumping = false;
      this.#pump();
    });
  }

  /** Starts batches: one, and more beside it where the store takes several and enough has gathered. */
  #pump(): void {
    const lanes = this.#options.engine.commitsAtOnce ?? 1;
    while (this.#queue.length > 0 && this.#queue.underWay < lanes) {
      const few = this.#queue.underWay > 0 && this.#queue.length < LANE_FROM;
      const fair = Math.max(LANE_FROM, Math.ceil(this.#queue.length / (lanes - this.#queue.underWay)));
      const batch = few ? [] : this.#queue.take(Math.min(BATCH_LIMIT, fair));
      if (batch.length === 0) return;
      void this.#run(batch);
    }
  }

  async #run(batch: Submitted[]): Promise<void> {
    try {
      await this.#process(batch);
    } catch (error) {
      for (const item of batch) if (!this.#queue.has(item)) item.reject(error);
    } finally {
      this.#queue.done(batch);
      this.#pump();
    }
  }

  async #process(batch: Submitted[]): Promise<void> {
    const impatience = Math.max(...batch.map((item) => item.attempts)) - PATIENCE;
    if (impatience > 0) await sleep(this.#options.clock, randomInt(1, 4 * Math.min(impatience, 8) + 2));

    const plans: Plan[] = [];
    const unknown: Submitted[][] = [];
    for (const group of groupByTouch(batch.filter((item) => !this.#settleEnded(item)))) {
      const plan = this.#planFromMemory(group);
      if (plan === undefined) unknown.push(group);
      else plans.push(plan);
    }
    if (unknown.length > 0) {
      const { items, loaded } = await this.#load(unknown.flat());
      for (const each of groupByTouch(items)) {
        // A record that cannot be read stops those who need it, not the rest of the batch.
        const group = each.filter((item) => {
          const error = whyUnreadable(loaded, item);
          if (error !== undefined) item.reject(error);
          return error === undefined;
        });
        if (group.length === 0) continue;
        const plan = this.#plan(group, loaded);
        if (plan === undefined) continue;
        if (plan.decision.write === null) this.#finish(plan, 0n);
        else plans.push(plan);
      }
    }
    if (plans.length > 0) await this.#commit(plans);
  }

  /** Loads what they touch; of more than the store takes at once, the later half rides on the next commit. */
  async #load(all: readonly Submitted[]): Promise<{ items: readonly Submitted[]; loaded: Reading }> {
    for (let items = all; ; ) {
      try {
        return { items, loaded: await load(this.#options.engine, items, HEAD_WINDOW) };
      } catch (error) {
        if (!(error instanceof InvalidArgumentError) || items.length < 2) throw error;
        const half = Math.ceil(items.length / 2);
        this.#queue.putBack(items.slice(half));
        items = items.slice(0, half);
      }
    }
  }

  async #commit(plans: readonly Plan[]): Promise<void> {
    const writes = plans.map(({ decision }) => decision.write).filter((write) => write !== null);
    let results: readonly CommitResult[];
    try {
      results = await this.#options.engine.commit(writes);
    } catch (error) {
      if (!(error instanceof InvalidArgumentError) || plans.length < 2) throw error;
      // Nothing happened, since one of them is larger than the store takes: it fails, and no other.
      const half = Math.ceil(plans.length / 2);
      const halves = [plans.slice(0, half), plans.slice(half)];
      await Promise.all(halves.map((some) => this.#commit(some).catch((cause) => this.#reject(some, cause))));
      return;
    }
    for (const [i, plan] of plans.entries()) {
      const result = results[i];
      if (result?.kind === 'committed') {
        this.#lastKnown.note(plan.decision.after(result.version));
        this.#finish(plan, result.version);
        continue;
      }
      if (result?.kind === 'sessionsEnded') this.#sessionsEnded(result.sessions);
      else this.#lastKnown.doubt(plan.decision.after(0n));
      this.#again(plan.group);
    }
  }

  #reject(plans: readonly Plan[], error: unknown): void {
    for (const { group } of plans) for (const item of group) item.reject(error);
  }

  /** An end is final, so whoever asks for a session that is over is answered without the store, however many ask. */
  #settleEnded({ command, resolve }: Submitted): boolean {
    if (command.kind !== 'acquire' || !this.#ended.has(command.session)) return false;
    resolve({ outcome: { kind: 'sessionEnded' }, version: 0n });
    return true;
  }

  /** A plan that needs no read; only if it writes, because only then the commit shows whether what is known is true. */
  #planFromMemory(group: Submitted[]): Plan | undefined {
    if (group.some((item) => item.attempts > 0)) return undefined;
    const loaded = this.#lastKnown.recall(group);
    if (loaded === undefined) return undefined;
    const decision = this.#decide(group, loaded);
    if (decision.write === null || decision.missing.length > 0) return undefined;
    return decision.write.guards.length <= this.#maxGuards ? { group, decision } : undefined;
  }

  #plan(group: Submitted[], loaded: Loaded): Plan | undefined {
    try {
      const decision = this.#decide(group, partOf(loaded, group));
      if (decision.missing.length === 0) {
        if (group.length === 1 || (decision.write?.guards.length ?? 0) <= this.#maxGuards)
          return { group, decision };
        // More than the store takes at once: the later half rides on the next commit.
        const half = Math.ceil(group.length / 2);
        this.#queue.putBack(group.slice(half));
        return this.#plan(group.slice(0, half), loaded);
      }
      for (const item of group)
        item.touch = touchOf(item.command, [...item.touch.names, ...decision.missing]);
      this.#again(group);
    } catch (error) {
      for (const item of group) item.reject(error);
    }
    return undefined;
  }

  #decide(group: readonly Submitted[], loaded: Loaded): Decision {
    return decide(
      loaded,
      group.map((item) => item.command),
      this.#surroundings,
    );
  }

  #finish({ group, decision }: Plan, version: Version): void {
    for (const [i, item] of group.entries()) {
      const outcome = decision.outcomes[i];
      if (outcome !== undefined) item.resolve({ outcome, version });
    }
    if (decision.inTheWay.length > 0) this.#sessionsEnded(decision.inTheWay);
    for (const name of decision.unfinished) this.submit({ kind: 'promote', name }).catch(leaveToThePoll);
  }

  #again(group: Submitted[]): void {
    const tired: Submitted[] = [];
    for (const item of group) {
      item.attempts += 1;
      if (item.attempts > ATTEMPT_LIMIT) tired.push(item);
    }
    for (const item of tired) {
      item.reject(
        new EngineUnavailableError(
          `The engine answered ${ATTEMPT_LIMIT} times with a conflict: too many write the same lock at once. Try again later.`,
          'definite',
        ),
      );
    }
    this.#queue.putBack(group.filter((item) => !tired.includes(item)));
  }

  #sessionsEnded(sessions: readonly string[]): void {
    for (const session of sessions) this.noteEnded(session);
    this.#options.onEnded(sessions);
  }
}

/** The part of what was loaded that the group touches: its write is guarded by that and by nothing else. */
function partOf(loaded: Loaded, group: readonly Submitted[]): Loaded {
  const requests = new Map<string, LoadedRequest>();
  for (const { touch } of group) {
    for (const key of touch.requestKeys)
      requests.set(key, loaded.requests.get(key) ?? { version: null, record: null });
  }
  return { locks: loaded.locks, requests };
}

/** A promotion that failed is made up for by the slow poll of whoever waits. */
function leaveToThePoll(): void {}
