import type { OnceRow } from './sql.ts';
import type { BeginOptions, OnceState } from './store.ts';

/** What a record that stands in the way of a run says; `undefined` where it went out of the way meanwhile: then begin again. */
export function stateOf(row: OnceRow | undefined, { takeOver }: BeginOptions): OnceState | undefined {
  if (row === undefined) return undefined;
  // A connection may be set to read its numbers as bigints.
  const over = Number(row.over) === 1;
  if (Number(row.done) === 1) return over ? undefined : { state: 'done', value: row.value ?? '' };
  if (!over) return { state: 'running' };
  return takeOver ? undefined : { state: 'unfinished', run: row.run };
}
