/** The whole state of one lock. */

import { element } from './dom.js';
import { holderRows, kindOf, ownerText } from './locks.js';
import { countText, printable } from './text.js';

/** @import { Lock, Owner } from './locks.js' */

/**
 * @param {Lock} lock
 * @returns {HTMLElement[]}
 */
export function lockPanel(lock) {
  const { holders, waiting, waiters, lastBreak } = lock;
  /** @type {HTMLElement[]} */
  const parts = [
    element('h3', {}, holders.length === 0 ? 'Nobody holds it' : `Held: ${kindOf(lock)}`),
    ...holderRows(lock, holders.length).rows.flatMap((row, i) => {
      const holder = holders[i];
      if (holder === undefined) return [];
      const entries = [['Token', row.token], ['Slot', String(holder.slot)], ...ownerEntries(holder.owner)];
      const list = entryList(entries);
      if (row.lost) list.prepend(element('p', { class: 'lost' }, LOST));
      return [list];
    }),
    element('h3', {}, waiting === 0 ? 'Nobody waits' : `Waiting: ${countText(waiting)}`),
  ];
  if (waiters.length > 0) {
    const line = waiters.map(({ mode, owner }) =>
      element('li', {}, `${ownerText(owner)}${mode === 'shared' ? ' (shared)' : ''}`),
    );
    parts.push(element('ol', {}, ...line));
  }
  if (waiting > waiters.length && waiters.length > 0)
    parts.push(element('p', {}, `and ${countText(waiting - waiters.length)} more behind them`));
  parts.push(element('h3', {}, lastBreak === null ? 'Never taken away by force' : 'Last forced release'));
  if (lastBreak !== null) {
    const { token, slot, by, reason, atMs, owner } = lastBreak;
    parts.push(
      entryList([
        ['At', timeText(atMs)],
        ['By', by],
        ['Reason', reason],
        ['Token', token],
        ['Slot', String(slot)],
        ...ownerEntries(owner),
      ]),
    );
  }
  return parts;
}

const LOST = 'This holder was lost. The lock stays closed for its lock-delay, and nobody works under it.';

/**
 * @param {Owner} owner
 * @returns {string[][]}
 */
function ownerEntries(owner) {
  return Object.entries(owner).map(([key, value]) => [key, value]);
}

/** @param {readonly string[][]} entries */
function entryList(entries) {
  const list = element('dl', { class: 'entries' });
  for (const [term = '', value = ''] of entries)
    list.append(element('dt', {}, printable(term)), element('dd', {}, element('bdi', {}, printable(value))));
  return element('div', { class: 'entry' }, list);
}

/** @param {number} atMs */
function timeText(atMs) {
  const at = new Date(atMs);
  return Number.isNaN(at.getTime()) ? String(atMs) : at.toLocaleString();
}
