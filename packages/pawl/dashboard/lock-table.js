/** The table of the locks in use. */

import { element, say } from './dom.js';
import { holderRows, linkTo, Sightings } from './locks.js';
import { ageText, countText, NOTHING, printable } from './text.js';

/** @import { Lock, Row } from './locks.js' */

/** Keeps the rows of a lock that has not changed as they are, with the focus and the selection that they may have. */
export class LockTable {
  #table;
  #sightings = new Sightings();
  /** @type {Map<string, { body: HTMLTableSectionElement, shows: string, ages: { cell: HTMLElement, grant: string }[] }>} */
  #shown = new Map();

  /** @param {HTMLTableElement} table with its head */
  constructor(table) {
    this.#table = table;
  }

  /**
   * @param {readonly Lock[]} locks
   * @param {number} nowMs
   */
  show(locks, nowMs) {
    const before = this.#shown;
    this.#shown = new Map();
    const grants = [];
    for (const lock of locks) {
      const { rows, more } = holderRows(lock);
      grants.push(...rows.map(({ grant }) => grant));
      const shows = JSON.stringify([rows, more, lock.waiting]);
      const old = before.get(lock.name);
      this.#shown.set(lock.name, old?.shows === shows ? old : { shows, ...lockBody(lock, rows, more) });
    }
    this.#sightings.note(grants, nowMs);
    this.#place();
    for (const { ages } of this.#shown.values()) {
      for (const { cell, grant } of ages) {
        const ageMs = this.#sightings.ageMs(grant, nowMs);
        say(cell, ageMs === undefined || grant === '' ? NOTHING : ageText(ageMs));
      }
    }
  }

  #place() {
    const focused = document.activeElement?.getAttribute('href');
    const wanted = [...this.#shown.values()].map(({ body }) => body);
    const kept = new Set(wanted);
    for (const body of [...this.#table.tBodies]) if (!kept.has(body)) body.remove();
    for (const [i, body] of wanted.entries()) {
      const there = this.#table.tBodies[i];
      if (there !== body) this.#table.insertBefore(body, there ?? null);
    }
    if (document.activeElement !== document.body || !focused) return;
    for (const link of this.#table.querySelectorAll('a'))
      if (link.getAttribute('href') === focused) link.focus({ preventScroll: true });
  }
}

/**
 * @param {Lock} lock
 * @param {readonly Row[]} rows
 * @param {number} more
 */
function lockBody({ name, waiting }, rows, more) {
  const height = String(rows.length + (more > 0 ? 1 : 0));
  const ages = [];
  const lines = [];
  for (const [i, row] of rows.entries()) {
    const age = element('td', { class: 'number' });
    ages.push({ cell: age, grant: row.grant });
    const holder = element('td', { class: 'holder' }, row.holder);
    if (row.lost) holder.append(' ', element('strong', { class: 'lost' }, 'lost, lock-delay'));
    const line = element(
      'tr',
      {},
      holder,
      element('td', { class: 'number token' }, row.token),
      element('td', { class: 'number' }, row.slot),
      age,
    );
    if (i === 0) {
      const link = element('a', { href: linkTo(name) }, element('bdi', {}, printable(name)));
      line.prepend(
        element('th', { scope: 'rowgroup', rowspan: height }, link),
        element('td', { rowspan: height }, row.mode),
      );
      line.append(element('td', { rowspan: height, class: 'number' }, countText(waiting)));
    }
    lines.push(line);
  }
  if (more > 0)
    lines.push(
      element('tr', {}, element('td', { colspan: '4', class: 'more' }, `and ${countText(more)} more`)),
    );
  return { body: element('tbody', {}, ...lines), ages };
}
