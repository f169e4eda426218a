/** One cell of a table: shown as it is, numbers right-aligned. */
export type Cell = string | number;

export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/** What a block measured: as data, and as it is shown. */
export interface Measured {
  /** The figures themselves, for `--json`, the plots and the tests. */
  readonly figures: unknown;
  /** What was set up, in a sentence or two. */
  readonly setting: string;
  readonly table: Table;
  /** What the figures say. */
  readonly finding: string;
  /** An experiment to go on with. */
  readonly tryIt: { readonly invitation: string; readonly table: Table; readonly finding: string };
}

/** A lesson of its own: one mechanism, measured. */
export interface Block {
  readonly number: number;
  readonly title: string;
  /** What it teaches, in a line. */
  readonly lesson: string;
  /** The blocks it builds on. */
  readonly needs: readonly number[];
  measure(): Measured | Promise<Measured>;
}

/** A question to answer before looking. */
export interface Question {
  readonly block: number | 'assembly';
  readonly text: string;
  /** What is measured, in words. */
  answer(): string;
}

export function percent(share: number, digits = 2): string {
  return `${(share * 100).toFixed(digits)}%`;
}

export function yesNo(value: boolean): string {
  return value ? 'yes' : 'no';
}
