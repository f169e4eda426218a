import { StoreCorruptError } from '../../errors.ts';
import type { Entry } from '../engine.ts';

/** An entry from what is stored under its key: its version, a colon, its value. @throws StoreCorruptError */
export function toEntry(key: string, stored: string): Entry {
  const [, version, value] = /^(\d{1,19}):(.*)$/s.exec(stored) ?? [];
  if (version === undefined || value === undefined)
    throw new StoreCorruptError(`The record "${key}"`, 'it does not begin with a version');
  return { key, value, version: BigInt(version) };
}

/** From a flat list of keys and what is stored under them. @throws StoreCorruptError */
export function toEntries(list: readonly (string | null)[]): Entry[] {
  const entries: Entry[] = [];
  for (let i = 0; i + 1 < list.length; i += 2) entries.push(toEntry(list[i] ?? '', list[i + 1] ?? ''));
  return entries;
}
