import { randomInt } from 'node:crypto';
import { sleep } from '../../clock.ts';
import { EngineUnavailableError } from '../../errors.ts';
import type { CommitResult, ConditionalWrite } from '../engine.ts';
import { unavailable } from './connection.ts';
import { Floor } from './floor.ts';
import type { Folders } from './folders.ts';
import type { Guards } from './guards.ts';
import { type Keeper, refused } from './keeper.ts';
import { pathOfKey } from './keys.ts';
import { guardOf, type Layout } from './layout.ts';
import { ANY_VERSION, CODE, setOperation } from './protocol.ts';
import { checkSize } from './size.ts';
import {
  type Deserted,
  isReady,
  noteDone,
  refusalOf,
  type Transaction,
  toTransaction,
} from './transaction.ts';
import { View, Wanted } from './view.ts';

/** So many writes are sent together at most. */
const BATCH_LIMIT = 512;
/** So often a write is sent again that was refused for another's sake. */
const ATTEMPT_LIMIT = 100;
/** From so many attempts on, it waits a little before the next. */
const PATIENCE = 3;
/** Refusals that are found out about by looking. */
const EXPECTED: ReadonlySet<number> = new Set([CODE.noNode, CODE.nodeExists, CODE.badVersion]);

interface Task {
  readonly write: ConditionalWrite;
  deserted: Deserted | undefined;
  attempts: number;
  settled: boolean;
  resolve(result: CommitResult): void;
  reject(error: unknown): void;
}

export interface CommitsOptions {
  readonly keeper: Keeper;
  readonly layout: Layout;
  readonly guards: Guards;
  readonly folders: Folders;
}

/**
 * Commits writes, each as one transaction. Transactions of one round are sent without waiting for each other; what is refused is looked into, and
 * either answered or sent again.
 */
export class Commits {
  /** As it was last seen. */
  floor: Floor | undefined;
  readonly #options: CommitsOptions;
  #queue: Task[] = [];
  #running = false;

  constructor(options: CommitsOptions) {
    this.#options = options;
  }

  /** @throws EngineUnavailableError, InvalidArgumentError where a write is too large: then nothing of the batch happens. */
  async commit(batch: readonly ConditionalWrite[]): Promise<CommitResult[]> {
    for (const write of batch) checkSize(this.#options.layout, write);
    const answers = batch.map((write) => {
      const { promise, resolve, reject } = Promise.withResolvers<CommitResult>();
      this.#queue.push({ write, deserted: undefined, attempts: 0, settled: false, resolve, reject });
      return promise;
    });
    if (!this.#running) {
      this.#running = true;
      void this.#run();
    }
    return allOrError(await Promise.allSettled(answers));
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      let open = this.#queue.splice(0, BATCH_LIMIT);
      while (open.length > 0) {
        const ready = independent(open);
        try {
          await this.#round(ready);
        } catch (error) {
          for (const task of ready) fail(task, error);
        }
        open = open.filter((task) => !task.settled);
      }
    }
    this.#running = false;
  }

  async #round(tasks: readonly Task[]): Promise<void> {
    const { guards, layout } = this.#options;
    const impatience = Math.max(...tasks.map(({ attempts }) => attempts)) - PATIENCE;
    if (impatience > 0)
      await sleep(this.#options.keeper.clock, randomInt(1, 2 * Math.min(impatience, 10) + 1));
    const unclear = this.floor === undefined ? tasks : tasks.filter(({ write }) => !isReady(write, guards));
    if (unclear.length > 0) await this.#look(unclear);
    const { floor } = this;
    const predicted = new Map<number, number>();
    const sent = tasks.map((task) => {
      if (task.settled || floor === undefined || !isReady(task.write, guards)) return undefined;
      const transaction = toTransaction(task.write, {
        layout,
        guards,
        floor,
        predicted,
        deserted: task.deserted,
      });
      return transaction === undefined ? undefined : this.#send(task, transaction, floor);
    });
    await Promise.all(sent);
    const open = tasks.filter((task) => !task.settled);
    for (const task of open) task.attempts += 1;
    if (open.length > 0) await this.#look(open);
    for (const task of open) {
      if (task.attempts < ATTEMPT_LIMIT) continue;
      fail(
        task,
        unavailable(`a write was refused ${ATTEMPT_LIMIT} times, since too many write at once`, 'definite'),
      );
    }
  }

  /** Settles the task unless its refusal has to be looked into. Never rejects. */
  async #send(task: Task, transaction: Transaction, floor: Floor): Promise<void> {
    const { keeper, folders, guards } = this.#options;
    try {
      for (const path of transaction.created) folders.prepare(path);
      const { zxid, results } = await keeper.multi(transaction.operations);
      const refusal = refusalOf(results);
      if (refusal === undefined) {
        const own = noteDone(transaction, results, zxid, floor, guards);
        settle(task, { kind: 'committed', version: own + floor.offset });
        return;
      }
      const purpose = transaction.purposes[refusal.index];
      if (!EXPECTED.has(refusal.code)) throw refused(refusal.code);
      if (purpose?.kind === 'entry') folders.forget(purpose.path);
    } catch (error) {
      fail(task, error);
    }
  }

  /** Looks at everything the writes depend on: answers those that cannot happen, and learns what the others need. */
  async #look(tasks: readonly Task[]): Promise<void> {
    const { keeper, layout, guards } = this.#options;
    const wanted = new Wanted();
    wanted.data(layout.floor);
    wanted.data(layout.inboxes);
    for (const { write } of tasks) {
      for (const id of write.alive) wanted.data(layout.session(id));
      for (const { inbox } of write.wakes) wanted.data(layout.inbox(inbox));
      for (const key of keysOf(write)) {
        wanted.data(layout.guard(guardOf(key)));
        wanted.data(pathOfKey(layout.keys, key));
      }
    }
    if (tasks.length > 1 && !wanted.fits) {
      const half = Math.ceil(tasks.length / 2);
      await this.#look(tasks.slice(0, half));
      return this.#look(tasks.slice(half));
    }
    const answers = wanted.answers((await keeper.multiRead(wanted.operations())).results);
    const floor = new Floor(layout, answers.get(`d${layout.floor}`));
    this.floor = floor;
    const view = new View();
    view.add(answers, floor);
    const versionAt = (key: string) => view.entry(pathOfKey(layout.keys, key), key)?.version ?? null;
    for (const task of tasks) {
      const { alive, guards: wantedGuards } = task.write;
      const ended = alive.filter((id) => view.dataVersion(layout.session(id)) == null);
      const differing = wantedGuards
        .filter(({ key, version }) => versionAt(key) !== version)
        .map(({ key }) => key);
      if (ended.length > 0) settle(task, { kind: 'sessionsEnded', sessions: [...new Set(ended)] });
      else if (differing.length > 0) settle(task, { kind: 'conflict', keys: [...new Set(differing)] });
      const inboxes = task.write.wakes.map(({ inbox }) => inbox);
      const missing = new Set(inboxes.filter((inbox) => view.dataVersion(layout.inbox(inbox)) == null));
      const dataVersion = view.dataVersion(layout.inboxes) ?? ANY_VERSION;
      task.deserted = missing.size > 0 ? { dataVersion, inboxes: missing } : undefined;
      for (const key of keysOf(task.write)) {
        const guard = guardOf(key);
        const path = layout.guard(guard);
        const dataVersion = view.dataVersion(path);
        if (dataVersion != null) guards.learn(guard, dataVersion, key, versionAt(key));
        // A data version that stands for any comes once in 2^32 writes; the next one is good again.
        if (dataVersion === ANY_VERSION)
          await keeper.operate(setOperation(path, Buffer.alloc(0), ANY_VERSION));
      }
    }
  }
}

/** Those that touch no key of one before them: all others have to see what became of that one. */
function independent(tasks: readonly Task[]): Task[] {
  const written = new Set<string>();
  const guarded = new Set<string>();
  return tasks.filter(({ write }) => {
    const writes = [...write.puts.map(({ key }) => key), ...write.deletes];
    const reads = write.guards.map(({ key }) => key);
    const free =
      !writes.some((key) => written.has(key) || guarded.has(key)) && !reads.some((key) => written.has(key));
    for (const key of writes) written.add(key);
    for (const key of reads) guarded.add(key);
    return free;
  });
}

function keysOf({ guards, puts, deletes }: ConditionalWrite): Set<string> {
  return new Set([...guards.map(({ key }) => key), ...puts.map(({ key }) => key), ...deletes]);
}

function settle(task: Task, result: CommitResult): void {
  task.settled = true;
  task.resolve(result);
}

function fail(task: Task, error: unknown): void {
  if (task.settled) return;
  task.settled = true;
  task.reject(error);
}

/** A batch of which one write failed has failed; definitely only if nothing of it happened. */
function allOrError(settled: readonly PromiseSettledResult<CommitResult>[]): CommitResult[] {
  const errors = settled.filter((one) => one.status === 'rejected').map((one): unknown => one.reason);
  if (errors.length === 0) return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const undecided = errors.find(
    (error) => error instanceof EngineUnavailableError && error.outcome === 'indefinite',
  );
  const happened = settled.some((one) => one.status === 'fulfilled' && one.value.kind === 'committed');
  const [first] = errors;
  if (undecided !== undefined) throw undecided;
  if (happened && first instanceof EngineUnavailableError) {
    throw new EngineUnavailableError(first.message, 'indefinite', { cause: first });
  }
  throw first;
}
