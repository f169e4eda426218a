/** Locks as `/v1/locks` tells of them, made ready to be shown. */

import { countText, NOTHING, printable } from './text.js';

/** Of one lock so many holders have a row; the others are counted, and told with the whole state. */
const MOST_HOLDERS = 5;

/**
 * @typedef {Readonly<Record<string, string>>} Owner
 * @typedef {object} Holder
 * @property {string} token
 * @property {number} slot
 * @property {string} mode
 * @property {Owner} owner
 * @property {boolean} lockDelay
 *
 * @typedef {object} Break
 * @property {string} token
 * @property {number} slot
 * @property {string} by
 * @property {string} reason
 * @property {number} atMs
 * @property {Owner} owner
 *
 * @typedef {object} Lock
 * @property {string} name
 * @property {number | null} permits
 * @property {readonly Holder[]} holders
 * @property {number} waiting
 * @property {readonly { mode: string, owner: Owner }[]} waiters
 * @property {Break | null} lastBreak
 *
 * @typedef {object} Row one holder
 * @property {string} mode
 * @property {string} holder
 * @property {string} token
 * @property {string} slot
 * @property {boolean} lost the lock stays closed, and nobody works under it
 * @property {string} grant which grant it is, for {@link Sightings}
 */

/**
 * Who somebody is, in a line: host and process first, then whatever else was said. A trace is told with the whole state.
 *
 * @param {Owner} owner
 * @returns {string}
 */
export function ownerText({ host, pid, traceparent, ...rest }) {
  const parts = [];
  if (host !== undefined) parts.push(host);
  if (pid !== undefined) parts.push(`pid ${pid}`);
  for (const [key, value] of Object.entries(rest)) parts.push(key === 'text' ? value : `${key}=${value}`);
  return parts.length === 0 ? 'says nothing of itself' : printable(parts.join(' · '));
}

/**
 * @param {Lock} lock
 * @returns {string}
 */
export function kindOf({ permits, holders }) {
  if (permits !== null) return `semaphore, ${countText(holders.length)} of ${countText(permits)}`;
  return holders[0]?.mode ?? NOTHING;
}

/**
 * @param {Lock} lock
 * @param {number} most
 * @returns {{ rows: Row[], more: number }} `more` are those beyond `most`; a lock that nobody holds has one row all the same
 */
export function holderRows(lock, most = MOST_HOLDERS) {
  const { name, permits, holders } = lock;
  const mode = kindOf(lock);
  if (holders.length === 0)
    return {
      rows: [{ mode, holder: 'nobody', token: NOTHING, slot: NOTHING, lost: false, grant: '' }],
      more: 0,
    };
  const rows = holders.slice(0, most).map((holder) => ({
    mode,
    holder: ownerText(holder.owner),
    token: holder.token,
    slot: permits === null && holder.mode === 'exclusive' ? NOTHING : String(holder.slot),
    lost: holder.lockDelay,
    grant: `${holder.token} ${holder.slot} ${name}`,
  }));
  return { rows, more: holders.length - rows.length };
}

/**
 * Where the server tells of one lock, relative to the page. The names `.` and `..` are directions in an address, however they
 * are written; a listing from them on begins with them.
 *
 * @param {string} name
 * @returns {string}
 */
export function addressOf(name) {
  if (/^\.{1,2}$/.test(name)) return `v1/locks?${new URLSearchParams({ prefix: name, limit: '1' })}`;
  return `v1/locks/${encodeURIComponent(name)}`;
}

/**
 * What the server answered at {@link addressOf}.
 *
 * @param {string} name
 * @param {Lock | { locks: readonly Lock[] }} answer
 * @returns {Lock}
 */
export function lockIn(name, answer) {
  if (!('locks' in answer)) return answer;
  const idle = { name, permits: null, holders: [], waiting: 0, waiters: [], lastBreak: null };
  return answer.locks.find((lock) => lock.name === name) ?? idle;
}

/**
 * The part of an address after `#` that opens a lock, and back.
 *
 * @param {string} name
 * @returns {string}
 */
export function linkTo(name) {
  return `#lock=${encodeURIComponent(name)}`;
}

/**
 * @param {string} hash
 * @returns {string | undefined} `undefined` where it opens none
 */
export function linkedLock(hash) {
  const encoded = /^#lock=(.+)$/.exec(hash)?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

/** Since when the page has seen each grant. No lock says when it was granted: tokens are no times. */
export class Sightings {
  /** @type {Map<string, number>} */
  #sinceMs = new Map();

  /**
   * @param {readonly string[]} grants all that there are now; others are forgotten
   * @param {number} nowMs
   */
  note(grants, nowMs) {
    this.#sinceMs = new Map(grants.map((grant) => [grant, this.#sinceMs.get(grant) ?? nowMs]));
  }

  /**
   * @param {string} grant
   * @param {number} nowMs
   * @returns {number | undefined}
   */
  ageMs(grant, nowMs) {
    const since = this.#sinceMs.get(grant);
    return since === undefined ? undefined : nowMs - since;
  }
}
