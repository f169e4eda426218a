import { sleep, systemClock } from '../clock.ts';
import type { LockState } from '../node/service.ts';
import { EXIT } from './exit-codes.ts';
import type { Parsed } from './options.ts';
import { withPawl } from './store.ts';
import { holderText, printable } from './text.ts';

/** Lines besides the locks: title, summary, a blank one, the head of the table. */
const OTHER_LINES = 4;
const CLEAR = '\u001b[H\u001b[2J';

/** `pawl top` */
export async function top({ options, positionals }: Parsed<'top'>): Promise<number> {
  const { every: everyMs, once, count, ...store } = options;
  return withPawl(store, async (pawl) => {
    const rates = new Rates();
    let stopped = false;
    const stop = () => {
      stopped = true;
    };
    process.once('SIGINT', stop);
    process.once('SIGTERM', stop);
    // Nobody reads it any more.
    process.stdout.once('error', stop);
    for (let shown = 0; !stopped; ) {
      const states: LockState[] = [];
      for await (const state of pawl.list(positionals[0] ?? '')) states.push(state);
      const terminal = process.stdout.isTTY === true;
      const rows = terminal ? Math.max(1, (process.stdout.rows ?? 24) - OTHER_LINES) : states.length;
      process.stdout.write((terminal && !once ? CLEAR : '') + screen(states, rates.note(states), rows));
      shown += 1;
      if (once || shown === count) break;
      for (let leftMs = everyMs; leftMs > 0 && !stopped; leftMs -= 100) {
        await sleep(systemClock, Math.min(100, leftMs));
      }
    }
    return EXIT.ok;
  });
}

/** Grants a second, as far as they show: of a lock whose token has changed at least one was made. */
class Rates {
  #before = new Map<string, bigint>();
  #beforeMs = systemClock.monotonicMs();

  /** @returns grants a second by lock; `undefined` the first time. */
  note(states: readonly LockState[]): ReadonlyMap<string, number> | undefined {
    const nowMs = systemClock.monotonicMs();
    const tokens = new Map(states.map(({ name, holders }) => [name, highest(holders)]));
    const seconds = (nowMs - this.#beforeMs) / 1000;
    const first = this.#before.size === 0;
    const rates = new Map<string, number>();
    for (const [name, token] of tokens) {
      if (token > (this.#before.get(name) ?? 0n)) rates.set(name, 1 / Math.max(seconds, 0.001));
    }
    this.#before = tokens;
    this.#beforeMs = nowMs;
    return first ? undefined : rates;
  }
}

function screen(
  states: readonly LockState[],
  rates: ReadonlyMap<string, number> | undefined,
  rows: number,
): string {
  const held = states.filter(({ holders }) => holders.length > 0).length;
  const waiting = states.reduce((sum, state) => sum + state.waiting, 0);
  const changing = rates === undefined ? '' : `, ${rates.size} granted anew since the last look`;
  const busiest = states
    .toSorted((a, b) => b.waiting - a.waiting || (a.name < b.name ? -1 : 1))
    .slice(0, rows);
  const table = [
    ['LOCK', 'HELD BY', 'WAITING', 'GRANTS/S'],
    ...busiest.map(({ name, holders, waiting }) => [
      printable(name),
      holders.map(holderText).join(', ') || 'free',
      String(waiting),
      rates === undefined ? '' : `≥ ${(rates.get(name) ?? 0).toFixed(1)}`,
    ]),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const lines = table.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `pawl top: ${states.length} locks in use, ${held} held, ${waiting} waiting${changing}\n\n${lines.join('\n')}\n`;
}

function highest(holders: LockState['holders']): bigint {
  let most = 0n;
  for (const { token } of holders) if (token > most) most = token;
  return most;
}
