import { InvalidArgumentError } from '../../errors.ts';
import type { ConditionalWrite } from '../engine.ts';
import { LONGEST_REQUEST } from './keeper.ts';
import type { Layout } from './layout.ts';

/** What an operation takes besides its texts, at most: its head and lengths, and what stands in its path before and between the key's parts. */
const EACH = 80;

/**
 * Refuses a write that ZooKeeper does not take, before anything of its batch is sent.
 *
 * @throws InvalidArgumentError
 */
export function checkSize(layout: Layout, { guards, alive, puts, deletes, wakes }: ConditionalWrite): void {
  const each = layout.root.length + EACH;
  const made = layout.create('').body.length + each;
  let bytes = (guards.length + alive.length + puts.length + 2 * deletes.length) * each;
  for (const { key, value } of puts) bytes += made + key.length + Buffer.byteLength(value);
  for (const id of alive) bytes += id.length;
  for (const key of deletes) bytes += key.length;
  for (const { inbox, message } of wakes)
    bytes += made + encodeURIComponent(inbox).length + Buffer.byteLength(message);
  if (bytes <= LONGEST_REQUEST) return;
  const expected = `at most ${LONGEST_REQUEST} bytes for ZooKeeper: fewer locks at once, or fewer that hold one together`;
  throw new InvalidArgumentError('write', expected, `${bytes} bytes`);
}
