import type { OnceStore, UnfinishedRun } from './store.ts';

export interface MemoryOnceStore extends OnceStore {
  /** What began and did not end in time: for an operator. */
  unfinished(): UnfinishedRun[];
  /** Removes the records that have expired; nothing else does. */
  deleteExpired(): void;
}

interface Entry {
  readonly run: string;
  readonly done: boolean;
  readonly value: string;
  readonly untilMs: number;
}

/**
 * Records in this process's memory: for tests, and for effects that need no memory beyond the process.
 *
 * @param clock `systemClock` of `pawl` is one.
 */
export function memoryOnceStore(clock: { monotonicMs(): number }): MemoryOnceStore {
  const entries = new Map<string, Entry>();
  const isOver = ({ untilMs }: Entry) => untilMs <= clock.monotonicMs();
  const own = (key: string, run: string) => {
    const entry = entries.get(key);
    return entry !== undefined && !entry.done && entry.run === run ? entry : undefined;
  };
  return {
    begin(key, run, { runMs, takeOver }) {
      const entry = entries.get(key);
      const expired = entry !== undefined && isOver(entry);
      if (entry?.done && !expired) return { state: 'done', value: entry.value };
      if (entry !== undefined && !entry.done && !expired) return { state: 'running' };
      const repeat = entry !== undefined && !entry.done;
      if (repeat && !takeOver) return { state: 'unfinished', run: entry.run };
      entries.set(key, { run, done: false, value: '', untilMs: clock.monotonicMs() + runMs });
      return { state: 'begun', repeat };
    },
    finish(key, value, keepMs) {
      const entry = entries.get(key);
      if (entry?.done) return entry.value;
      const untilMs = clock.monotonicMs() + (keepMs ?? Number.POSITIVE_INFINITY);
      entries.set(key, { run: entry?.run ?? '', done: true, value, untilMs });
      return value;
    },
    forget(key, run) {
      if (own(key, run) !== undefined) entries.delete(key);
    },
    giveUp(key, run) {
      const entry = own(key, run);
      if (entry !== undefined) entries.set(key, { ...entry, untilMs: clock.monotonicMs() });
    },
    unfinished: () =>
      [...entries].flatMap(([key, entry]) => (!entry.done && isOver(entry) ? [{ key, run: entry.run }] : [])),
    deleteExpired() {
      for (const [key, entry] of entries) if (entry.done && isOver(entry)) entries.delete(key);
    },
  };
}
