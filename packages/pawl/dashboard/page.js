/** The dashboard: looks at the server every two seconds and shows what it sees. It only reads. */

import { byId, define, say } from './dom.js';
import { lockPanel } from './lock-panel.js';
import { LockTable } from './lock-table.js';
import { addressOf, linkedLock, lockIn } from './locks.js';
import { Activity, parseMetrics } from './metrics.js';
import { Server } from './server.js';
import { countText, printable, rateText, secondsText } from './text.js';
import { Trouble, troubleText } from './trouble.js';

const LOOK_EVERY_MS = 2000;
/** After a key was pressed in the filter, so long for the next one. */
const TYPING_MS = 250;

const ready = byId('ready', HTMLElement);
const trouble = byId('trouble', HTMLElement);
const authentication = byId('authentication', HTMLFormElement);
const token = byId('token', HTMLInputElement);
const forget = byId('forget', HTMLButtonElement);
const prefix = byId('prefix', HTMLInputElement);
const empty = byId('empty', HTMLElement);
const pages = byId('pages', HTMLElement);
const [back, next] = [byId('back', HTMLButtonElement), byId('next', HTMLButtonElement)];
const panel = byId('lock', HTMLElement);
const title = byId('lock-title', HTMLElement);
const state = byId('state', HTMLElement);

const server = new Server();
const activity = new Activity();
const table = new LockTable(byId('table', HTMLTableElement));

/** Where each page up to the present one begins: after this name. @type {(string | undefined)[]} */
let begins = [undefined];
/** @type {string | null} */
let nextAfter = null;
let locksText = '–';
/** @type {import('./metrics.js').Figures | undefined} */
let figures;
let shownState = '';
/** Counts up with what the user wants to see: what was asked for before is not shown any more. */
let wish = 0;
/** @type {number | undefined} */
let timer;

/** Looks now, and then again and again. */
async function look() {
  clearTimeout(timer);
  wish += 1;
  const mine = wish;
  /** @type {Trouble | undefined} */
  let worst;
  try {
    await lookOnce(() => mine === wish);
  } catch (error) {
    worst = error instanceof Trouble ? error : new Trouble(-1, String(error));
  }
  if (mine !== wish) return;
  if (worst?.status === 401) showNothing();
  tellTrouble(worst);
  if (worst === undefined) say(byId('updated', HTMLElement), `as of ${new Date().toLocaleTimeString()}`);
  if (!document.hidden) timer = setTimeout(look, LOOK_EVERY_MS);
}

/**
 * @param {() => boolean} wanted
 * @throws {Trouble} the first of what went wrong; what went well is shown all the same
 */
async function lookOnce(wanted) {
  try {
    const problem = await server.problem();
    tellReady(
      problem === undefined ? 'yes' : 'no',
      problem === undefined ? 'Ready' : `Not ready: ${problem}`,
    );
  } catch (error) {
    tellReady('no', 'Unreachable');
    throw error;
  }
  // First one alone: a server that wants a token refuses one request, not all.
  tellGuarantees(await server.json('v1/guarantees'));
  const results = await Promise.allSettled([lookAtMetrics(wanted), lookAtLocks(wanted), lookAtLock(wanted)]);
  tellFigures();
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** @param {() => boolean} wanted */
async function lookAtMetrics(wanted) {
  const metrics = parseMetrics(await server.text('metrics'));
  if (wanted()) figures = activity.note(metrics, performance.now());
}

/** @param {() => boolean} wanted */
async function lookAtLocks(wanted) {
  const query = new URLSearchParams({ prefix: prefix.value });
  const after = begins.at(-1);
  if (after !== undefined) query.set('after', after);
  if (prefix.value === '') query.delete('prefix');
  try {
    const answer = await server.json(`v1/locks?${query}`);
    if (wanted()) tellLocks(answer);
  } catch (error) {
    // Rows that this filter or this token does not lead to are not left standing.
    if (wanted() && isRefusal(error)) tellLocks(undefined);
    throw error;
  }
}

/** @param {() => boolean} wanted */
async function lookAtLock(wanted) {
  const name = linkedLock(location.hash);
  panel.hidden = name === undefined;
  if (name === undefined) return;
  say(title, printable(name));
  try {
    const answer = await server.json(addressOf(name));
    if (wanted()) showState(lockIn(name, answer));
  } catch (error) {
    if (wanted() && isRefusal(error)) showState(undefined);
    throw error;
  }
}

/** @param {import('./locks.js').Lock | undefined} lock */
function showState(lock) {
  const text = JSON.stringify(lock) ?? '';
  if (text === shownState) return;
  shownState = text;
  state.replaceChildren(...(lock === undefined ? [] : lockPanel(lock)));
}

/** @param {unknown} error */
function isRefusal(error) {
  return error instanceof Trouble && error.status >= 400 && error.status < 500;
}

/** @param {{ locks: import('./locks.js').Lock[], next: string | null } | undefined} answer `undefined` where it was refused */
function tellLocks(answer) {
  const locks = answer?.locks ?? [];
  nextAfter = answer?.next ?? null;
  table.show(locks, performance.now());
  const beforeThese = begins.length > 1;
  locksText = answer === undefined ? '–' : countText(locks.length);
  if (beforeThese || nextAfter !== null) locksText = 'many';
  if (!beforeThese && nextAfter !== null) locksText = `${countText(locks.length)}+`;
  const none = beforeThese
    ? 'There are no more locks.'
    : prefix.value === ''
      ? 'No lock is in use.'
      : `No lock in use has a name that begins with “${printable(prefix.value)}”.`;
  say(empty, none);
  empty.hidden = answer === undefined || locks.length > 0;
  pages.hidden = !beforeThese && nextAfter === null;
  say(byId('page', HTMLElement), `Page ${begins.length}`);
  back.disabled = !beforeThese;
  next.disabled = nextAfter === null;
}

function tellFigures() {
  const { sessions, waiters, grantsPerSecond, refusedPerSecond, waitP50, waitP99, longestBucket } =
    figures ?? {};
  /** @param {number | undefined} seconds */
  const wait = (seconds) =>
    seconds === Number.POSITIVE_INFINITY ? `> ${secondsText(longestBucket)}` : secondsText(seconds);
  define(byId('figures', HTMLElement), [
    ['Locks in use', locksText, prefix.value === '' ? '' : 'by the filter'],
    ['Waiters', countText(waiters), 'through this server'],
    ['Sessions', countText(sessions), 'through this server'],
    ['Grants', rateText(grantsPerSecond), 'a second'],
    ['Refused', rateText(refusedPerSecond), 'a second'],
    ['Wait, p50', wait(waitP50), 'from acquire to grant'],
    ['Wait, p99', wait(waitP99), 'from acquire to grant'],
  ]);
}

/** @param {Record<string, unknown>} guarantees */
function tellGuarantees(guarantees) {
  const list = byId('guarantees', HTMLElement);
  list.hidden = false;
  const { engine, durable, mutualExclusion, survives, expiryDecidedBy, tokensRestOn, wakeUp } = guarantees;
  define(list, [
    ['Engine', String(engine)],
    ['Durable when answered', durable === true ? 'yes' : 'no'],
    ['Mutual exclusion', mutualExclusion === 'yes' ? 'yes' : 'depends on clocks'],
    ['Late writes', 'only a fence refuses them'],
    ['Survives', String(survives)],
    ['Expiry is decided by', String(expiryDecidedBy)],
    ['Tokens rest on', String(tokensRestOn)],
    ['Wake-up', String(wakeUp)],
    ['Shortest TTL', `${guarantees.minTtlMs} ms`],
    ['An end is noticed within', `${guarantees.sweepMs} ms`],
  ]);
}

/**
 * @param {'yes' | 'no'} is
 * @param {string} text
 */
function tellReady(is, text) {
  ready.dataset.ready = is;
  say(ready, text);
}

/** @param {Trouble | undefined} what */
function tellTrouble(what) {
  say(trouble, what === undefined ? '' : troubleText(what, server.hasToken));
  trouble.hidden = what === undefined;
  document.body.classList.toggle('old', what !== undefined && (what.status <= 0 || what.status >= 500));
  forget.hidden = !server.hasToken;
  const asks = what?.status === 401 || what?.status === 403;
  if (asks && authentication.hidden && what.status === 401) queueMicrotask(() => token.focus());
  authentication.hidden = !asks;
}

/** What one token has shown is not left standing for the next. */
function showNothing() {
  figures = undefined;
  tellLocks(undefined);
  tellFigures();
  showState(undefined);
}

/** @param {string} text */
function useToken(text) {
  server.use(text);
  token.value = '';
  begins = [undefined];
  showNothing();
  void look();
}

authentication.addEventListener('submit', (event) => {
  event.preventDefault();
  useToken(token.value.trim());
});
token.addEventListener('input', () => {
  const wrong = /^[\x21-\x7e]*$/.test(token.value.trim())
    ? ''
    : 'A token has neither blanks nor characters beyond ASCII.';
  token.setCustomValidity(wrong);
});
forget.addEventListener('click', () => useToken(''));
prefix.addEventListener('input', () => {
  clearTimeout(timer);
  wish += 1;
  begins = [undefined];
  timer = setTimeout(look, TYPING_MS);
});
byId('close', HTMLButtonElement).addEventListener('click', () => {
  location.hash = '';
});
back.addEventListener('click', () => {
  if (begins.length > 1) begins.pop();
  void look();
});
next.addEventListener('click', () => {
  if (nextAfter === null) return;
  begins.push(nextAfter);
  nextAfter = null;
  void look();
});
window.addEventListener('hashchange', ({ oldURL }) => {
  const opened = linkedLock(location.hash);
  showState(undefined);
  panel.hidden = opened === undefined;
  if (opened !== undefined) {
    say(title, printable(opened));
    title.focus();
  } else {
    const from = new URL(oldURL).hash;
    for (const link of document.querySelectorAll('#table a'))
      if (link instanceof HTMLElement && link.getAttribute('href') === from) link.focus();
  }
  void look();
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void look();
});

say(byId('server', HTMLElement), location.host);
tellFigures();
void look();
