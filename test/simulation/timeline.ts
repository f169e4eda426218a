import type { FaultKind } from './fault-kinds.ts';

/** What happened in a run, in order; the last of it is printed where something went wrong. */
export class Timeline {
  readonly #lines: string[] = [];
  readonly #now: () => number;
  /** How often what happened, faults apart. */
  readonly counts = new Map<string, number>();
  readonly faults = new Map<FaultKind, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** @param kind what it counts as; @param detail who and what. */
  note(kind: string, detail = ''): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    this.#add(kind, detail);
  }

  /** A fault that was injected. */
  noteFault(kind: FaultKind, detail: string): void {
    this.countFault(kind);
    this.#add(kind, detail);
  }

  /** As {@link noteFault}, for one so frequent that it would hide everything else. */
  countFault(kind: FaultKind): void {
    this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1);
  }

  #add(kind: string, detail: string): void {
    this.#lines.push(`${this.#now().toFixed(0).padStart(8)} ms  ${kind.padEnd(14)} ${detail}`);
    if (this.#lines.length > 2000) this.#lines.splice(0, 1000);
  }

  last(count: number): string {
    return this.#lines.slice(-count).join('\n');
  }
}

/** A promise was broken. */
export class Violation extends Error {
  override readonly name = 'Violation';
}
