import type { Model } from './model.ts';

/** What the search needs to know of an operation. */
export interface Interval {
  readonly calledAtMs: number;
  readonly returnedAtMs: number;
}

export type Found<O, S> =
  | { readonly kind: 'linearizable' }
  /** The longest order that was found: after `placed`, in `state`, none of `unplaced` can come next, and one of them must. */
  | {
      readonly kind: 'stuck';
      readonly placed: readonly O[];
      readonly unplaced: readonly O[];
      readonly state: S;
    }
  | { readonly kind: 'undecided' };

interface Choice<S> {
  /** Where it stands among the closed or the open operations. */
  readonly index: number;
  /** `dropped`: it never took effect. */
  readonly way: 'closed' | 'dropped' | 'open';
  readonly state: S;
}

interface Frame<S> {
  readonly state: S;
  readonly choices: readonly Choice<S>[];
  /** What led here; `undefined` at the start. */
  readonly by: Choice<S> | undefined;
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
  #longest: { placed: O[]; unplaced: O[]; state: S } | undefined;

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
    const path: Frame<S>[] = [this.#frame(this.#model.initial, undefined)];
    while (this.#base < this.#closed.length) {
      const frame = path.at(-1);
      if (frame === undefined) {
        return { kind: 'stuck', placed: [], unplaced: [], state: this.#model.initial, ...this.#longest };
      }
      const choice = frame.choices[frame.next];
      frame.next += 1;
      if (choice === undefined) {
        this.#noteDeadEnd(path, frame.state);
        path.pop();
        this.#undo(frame);
        continue;
      }
      const next = this.#enter(choice);
      if (next !== undefined) path.push(next);
      if (this.#seen.size > this.#maxStates) return { kind: 'undecided' };
    }
    return { kind: 'linearizable' };
  }

  /** Places what was chosen; `undefined` where the search was here before. */
  #enter(choice: Choice<S>): Frame<S> | undefined {
    const { base, top } = { base: this.#base, top: this.#top };
    if (choice.way === 'open') this.#isUsed[choice.index] = 1;
    else {
      this.#isDone[choice.index] = 1;
      this.#top = Math.max(top, choice.index + 1);
      while (this.#isDone[this.#base] === 1) this.#base += 1;
    }
    const key = this.#key(choice.state);
    if (this.#seen.has(key)) {
      this.#undo({ by: choice, base, top });
      return undefined;
    }
    this.#seen.add(key);
    return { ...this.#frame(choice.state, choice), base, top };
  }

  #undo({ by, base, top }: Pick<Frame<S>, 'by' | 'base' | 'top'>): void {
    if (by === undefined) return;
    (by.way === 'open' ? this.#isUsed : this.#isDone)[by.index] = 0;
    this.#base = base;
    this.#top = top;
  }

  #frame(state: S, by: Choice<S> | undefined): Frame<S> {
    return { state, by, choices: this.#choices(state), base: this.#base, top: this.#top, next: 0 };
  }

  /** Everything that can come next; first what is most likely to, so that a good history is read in one go. */
  #choices(state: S): Choice<S>[] {
    const { candidates, first, untilMs } = this.#candidates();
    const choices: Choice<S>[] = [];
    const place = (operation: O, index: number, way: Choice<S>['way']) => {
      const next = this.#model.step(state, operation);
      if (next !== undefined) choices.push({ index, way, state: next });
    };
    for (const index of candidates) place(this.#closed[index] as O, index, 'closed');
    for (const [index, operation] of this.#open.entries()) {
      if (operation.calledAtMs > untilMs) break;
      if (this.#isUsed[index] === 0) place(operation, index, 'open');
    }
    // Dropping it is put off until nothing else can go on before its return.
    if (first !== undefined && !this.#isCertain(this.#closed[first] as O)) {
      choices.push({ index: first, way: 'dropped', state });
    }
    return choices;
  }

  /** Those left that were called before the first return of those left, and the one that returns first. */
  #candidates(): { candidates: number[]; first: number | undefined; untilMs: number } {
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
    return { candidates, first, untilMs };
  }

  /** Which operations are placed, and the state: all that matters for what can come after. */
  #key(state: S): string {
    const beyond = [];
    for (let i = this.#base; i < this.#top; i += 1) if (this.#isDone[i] === 1) beyond.push(i);
    const used = [];
    for (let i = 0; i < this.#isUsed.length; i += 1) if (this.#isUsed[i] === 1) used.push(i);
    return `${this.#base} ${beyond} ${used} ${this.#model.key(state)}`;
  }

  #noteDeadEnd(path: readonly Frame<S>[], state: S): void {
    if (this.#longest !== undefined && this.#longest.placed.length >= path.length - 1) return;
    const placed = path.flatMap(({ by }) => {
      if (by === undefined || by.way === 'dropped') return [];
      return [(by.way === 'open' ? this.#open : this.#closed)[by.index] as O];
    });
    if (this.#longest !== undefined && this.#longest.placed.length >= placed.length) return;
    const { candidates } = this.#candidates();
    const unplaced = candidates.map((index) => this.#closed[index] as O).filter(this.#isCertain);
    this.#longest = { placed, unplaced, state };
  }
}
