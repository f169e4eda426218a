import type { Model } from './model.ts';

/** What the search needs to know of an operation. */
export interface Interval {
  readonly calledAtMs: number;
  readonly returnedAtMs: number;
}

export type Found<O, S> =
  | { readonly kind: 'linearizable' }
  /** The longest order that was found: after `placed`, in `state`, none of `unplaced` can come next, and one of them must. */
  | ({ readonly kind: 'stuck' } & DeadEnd<O, S>)
  | { readonly kind: 'undecided' };

interface DeadEnd<O, S> {
  readonly placed: readonly O[];
  readonly unplaced: readonly O[];
  readonly state: S;
}

interface Choice<S> {
  /** Where it stands among the closed or the open operations. */
  readonly index: number;
  /** `dropped`: it never took effect. */
  readonly way: 'closed' | 'dropped' | 'open';
  readonly state: S;
}

/** Those left that were called before the first return of those left, by their indices. */
interface Candidates {
  readonly closed: readonly number[];
  readonly open: readonly number[];
  /** Of the closed ones, the one that returns first. */
  readonly first: number | undefined;
  /** When it returns. */
  readonly untilMs: number;
}

interface Frame<S> {
  readonly state: S;
  readonly choices: readonly Choice<S>[];
  /** What led here; `undefined` at the start. */
  readonly by: Choice<S> | undefined;
  /** The first return of those left. */
  readonly untilMs: number;
  /** How many operations are placed of those that took effect for certain. */
  readonly certain: number;
  /** To be restored by whoever goes back. */
  readonly base: number;
  readonly top: number;
  next: number;
}

/**
 * Looks for an order of the operations of one object, in which each takes effect at one moment between its call and its return and gets the
 * reply that it got. This is the search of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993): whatever was called before the first
 * return of those left can come next. As Lowe found ("Testing for linearizability", 2017), it need not go on from a set of placed operations
 * and a state from which it went on before. Porcupine searches likewise; unlike it, an operation of unknown outcome may be left out.
 */
export class Search<O extends Interval, S> {
  readonly #model: Model<O, S>;
  readonly #isCertain: (operation: O) => boolean;
  readonly #maxStates: number;
  /** Those with a return, in the order of their calls: each is placed, or dropped where its outcome is unknown. */
  readonly #closed: readonly O[];
  readonly #isDone: Uint8Array;
  /** All before it are done. */
  #base = 0;
  /** None from it on is done. */
  #top = 0;
  /** Those that may take effect at any time after their calls, or never, in the order of their calls. */
  readonly #open: readonly O[];
  readonly #isUsed: Uint8Array;
  readonly #seen = new Set<string>();
  #longest: (DeadEnd<O, S> & Pick<Frame<S>, 'untilMs' | 'certain'> & { readonly steps: number }) | undefined;

  constructor(
    operations: readonly O[],
    model: Model<O, S>,
    isCertain: (operation: O) => boolean,
    maxStates: number,
  ) {
    this.#model = model;
    this.#isCertain = isCertain;
    this.#maxStates = maxStates;
    const byCall = operations.toSorted((a, b) => a.calledAtMs - b.calledAtMs);
    this.#closed = byCall.filter(({ returnedAtMs }) => returnedAtMs !== Infinity);
    this.#open = byCall.filter(({ returnedAtMs }) => returnedAtMs === Infinity);
    this.#isDone = new Uint8Array(this.#closed.length);
    this.#isUsed = new Uint8Array(this.#open.length);
  }

  run(): Found<O, S> {
    const path: Frame<S>[] = [this.#start()];
    while (this.#base < this.#closed.length) {
      const frame = path.at(-1);
      if (frame === undefined) {
        const { placed = [], unplaced = [], state = this.#model.initial } = this.#longest ?? {};
        return { kind: 'stuck', placed, unplaced, state };
      }
      const choice = frame.choices[frame.next];
      frame.next += 1;
      if (choice === undefined) {
        this.#noteDeadEnd(path, frame);
        path.pop();
        this.#undo(frame);
        continue;
      }
      const next = this.#enter(choice, frame.certain);
      if (next !== undefined) path.push(next);
      if (this.#seen.size > this.#maxStates) return { kind: 'undecided' };
    }
    return { kind: 'linearizable' };
  }

  /** Places what was chosen; `undefined` where the search was here before. */
  #enter(choice: Choice<S>, before: number): Frame<S> | undefined {
    const { base, top } = { base: this.#base, top: this.#top };
    if (choice.way === 'open') this.#isUsed[choice.index] = 1;
    else {
      this.#isDone[choice.index] = 1;
      this.#top = Math.max(top, choice.index + 1);
      while (this.#isDone[this.#base] === 1) this.#base += 1;
    }
    const candidates = this.#candidates();
    const state = this.#withUnderWay(choice.state, candidates);
    const key = this.#key(state);
    if (this.#seen.has(key)) {
      this.#undo({ by: choice, base, top });
      return undefined;
    }
    this.#seen.add(key);
    const choices = this.#choices(state, candidates);
    const isCertain = choice.way === 'closed' && this.#isCertain(this.#closed[choice.index] as O);
    const certain = before + Number(isCertain);
    return { state, by: choice, choices, untilMs: candidates.untilMs, certain, base, top, next: 0 };
  }

  #undo({ by, base, top }: Pick<Frame<S>, 'by' | 'base' | 'top'>): void {
    if (by === undefined) return;
    (by.way === 'open' ? this.#isUsed : this.#isDone)[by.index] = 0;
    this.#base = base;
    this.#top = top;
  }

  #start(): Frame<S> {
    const candidates = this.#candidates();
    const state = this.#withUnderWay(this.#model.initial, candidates);
    const choices = this.#choices(state, candidates);
    const { untilMs } = candidates;
    return { state, by: undefined, choices, untilMs, certain: 0, base: this.#base, top: this.#top, next: 0 };
  }

  #withUnderWay(state: S, { closed, open }: Candidates): S {
    if (this.#model.underWay === undefined) return state;
    const operations = [
      ...closed.map((index) => this.#closed[index] as O),
      ...open.map((index) => this.#open[index] as O),
    ];
    return this.#model.underWay(state, operations);
  }

  /** Everything that can come next; first what is most likely to, so that a good history is read in one go. */
  #choices(state: S, { closed, open, first }: Candidates): Choice<S>[] {
    const choices: Choice<S>[] = [];
    const place = (operation: O, index: number, way: Choice<S>['way']) => {
      for (const next of this.#model.step(state, operation)) choices.push({ index, way, state: next });
    };
    for (const index of closed) place(this.#closed[index] as O, index, 'closed');
    for (const index of open) place(this.#open[index] as O, index, 'open');
    // Dropping it is put off until nothing else can go on before its return.
    const returning = first === undefined ? undefined : this.#closed[first];
    if (first !== undefined && returning !== undefined && !this.#isCertain(returning)) {
      const next = this.#model.dropped?.(state, returning) ?? state;
      choices.push({ index: first, way: 'dropped', state: next });
    }
    return choices;
  }

  #candidates(): Candidates {
    const candidates: number[] = [];
    let first: number | undefined;
    let untilMs = Infinity;
    for (let i = this.#base; i < this.#closed.length; i += 1) {
      const { calledAtMs, returnedAtMs } = this.#closed[i] as O;
      if (calledAtMs > untilMs) break;
      if (this.#isDone[i] === 1) continue;
      candidates.push(i);
      if (returnedAtMs < untilMs) {
        untilMs = returnedAtMs;
        first = i;
      }
    }
    const doubt = (index: number) => Number(!this.#isCertain(this.#closed[index] as O));
    const returned = (index: number) => (this.#closed[index] as O).returnedAtMs;
    candidates.sort((a, b) => doubt(a) - doubt(b) || returned(a) - returned(b));
    const open: number[] = [];
    for (const [index, { calledAtMs }] of this.#open.entries()) {
      if (calledAtMs > untilMs) break;
      if (this.#isUsed[index] === 0) open.push(index);
    }
    return { closed: candidates, open, first, untilMs };
  }

  /** Which operations are placed, and the state: all that matters for what can come after. */
  #key(state: S): string {
    const beyond = [];
    for (let i = this.#base; i < this.#top; i += 1) if (this.#isDone[i] === 1) beyond.push(i);
    const used = [];
    for (let i = 0; i < this.#isUsed.length; i += 1) if (this.#isUsed[i] === 1) used.push(i);
    return `${this.#base} ${beyond} ${used} ${this.#model.key(state)}`;
  }

  /** Of all dead ends the one that comes furthest in time is told; among those, the one that explains the most and assumes the least. */
  #noteDeadEnd(path: readonly Frame<S>[], { state, untilMs, certain }: Frame<S>): void {
    const steps = path.length;
    const longest = this.#longest;
    const merits =
      longest === undefined
        ? [1]
        : [untilMs - longest.untilMs, certain - longest.certain, longest.steps - steps];
    if (!((merits.find((merit) => merit !== 0) ?? 0) > 0)) return;
    const placed = path.flatMap(({ by }) => {
      if (by === undefined || by.way === 'dropped') return [];
      return [(by.way === 'open' ? this.#open : this.#closed)[by.index] as O];
    });
    const unplaced = this.#candidates()
      .closed.map((index) => this.#closed[index] as O)
      .filter(this.#isCertain);
    this.#longest = { placed, unplaced, state, untilMs, certain, steps };
  }
}
