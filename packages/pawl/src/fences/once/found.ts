import type { OnceRow } from './sql.ts';
import type { BeginOptions, OnceState } from './store.ts';

/** What a record that stands in the way of a run says; `undefined` where it went out of the way meanwhile: then begin again. */
export function stateOf(row: OnceRow | undefined, { takeOver }: BeginOptions): OnceState | undefined {
  if (row === undefined) return undefined;
  const over = row.over === true || row.over === 1;
  if (row.done === 1) return over ? undefined : { state: 'done', value: row.value ?? '' };
  if (!over) return { state: 'running' };
  return takeOver ? undefined : { state: 'unfinished', run: row.run };
}
