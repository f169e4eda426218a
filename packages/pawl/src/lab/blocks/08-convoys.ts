import { LabLock } from '../lab-lock.ts';
import type { Block } from '../lesson.ts';

const CLIENTS = 4;
const SECTIONS = 100;
const SECTION_MS = 1;
/** So many sections a running client does before it is taken off its processor. */
const QUANTUM = 10;
const SWITCHES_MS = [0, 0.1, 0.5, 1, 2, 5, 10];

/**
 * All clients want the lock all the time. On hand-over it goes to the first in line, who has to be woken. On barging the client that
 * runs takes it again before the woken one is there, until its time slice is over.
 */
function drive(rule: 'hand-over' | 'barging') {
  const lock = new LabLock(3600);
  const barging = rule === 'barging';
  const requests = Array.from({ length: CLIENTS }, (_, i) => `${i}.0`);
  const ask = (client: number) =>
    lock.acquireAll(`c${client}`, 0, { wait: true, barging, request: requests[client] ?? '' }) !== null;
  let running = 0;
  let [switches, passes] = [0, 0];
  const longest = new Array<number>(CLIENTS).fill(0);
  const since = new Array<number>(CLIENTS).fill(0);
  for (let client = 0; client < CLIENTS; client += 1) ask(client);
  for (let section = 1; section <= SECTIONS; section += 1) {
    lock.release(`c${running}`, requests[running] ?? '', 0, true);
    requests[running] = `${running}.${section}`;
    since[running] = section;
    const staysOn = barging && section % QUANTUM !== 0;
    if (ask(running)) {
      if (staysOn) passes += 1;
      else {
        // Its slice is over, so the one that was woken claims the lock, and this one queues behind all others.
        lock.release(`c${running}`, requests[running] ?? '', 0, true);
        requests[running] = `${running}.${section}+`;
      }
    }
    if (!staysOn) {
      const next = [...requests.keys()].find((client) => client !== running && ask(client));
      if (barging) ask(running);
      if (next !== undefined) {
        longest[next] = Math.max(longest[next] ?? 0, section - (since[next] ?? 0));
        running = next;
        switches += 1;
      }
    }
  }
  return { rule, switches, passes, longestWait: Math.max(...longest) };
}

export function convoyFigures() {
  const rules = [drive('hand-over'), drive('barging')];
  const perSecond = (switches: number, switchMs: number) =>
    Math.round((SECTIONS * 1000) / (SECTIONS * SECTION_MS + switches * switchMs));
  const curve = SWITCHES_MS.map((switchMs) => ({
    switchMs,
    handOver: perSecond(rules[0]?.switches ?? 0, switchMs),
    barging: perSecond(rules[1]?.switches ?? 0, switchMs),
  }));
  return { rules, curve };
}

export const convoys: Block = {
  number: 8,
  title: 'Lock convoys',
  lesson: 'order is paid for with a switch at every hand-over',
  needs: [2],
  measure() {
    const figures = convoyFigures();
    return {
      figures,
      setting: `${CLIENTS} clients want one lock all the time; a section takes ${SECTION_MS} ms. Waking another costs a switch. Barging lets the client that runs take the lock again, ${QUANTUM} sections in a row.`,
      table: {
        columns: ['a switch costs', 'hand-over, sections/s', 'barging, sections/s'],
        rows: figures.curve.map((row) => [`${row.switchMs} ms`, row.handOver, row.barging]),
      },
      finding:
        'With hand-over the lock stands idle during every switch, and once a switch costs more than a section most of the time is ' +
        'switching. Barging spreads one switch over many sections.',
      tryIt: {
        invitation: 'Count who is passed by, and who waits longest.',
        table: {
          columns: ['rule', 'switches', 'took it before the first in line', 'longest wait, in sections'],
          rows: figures.rules.map((row) => [row.rule, row.switches, row.passes, row.longestWait]),
        },
        finding: 'That is the price: order. Pawl hands over unless a lock is told otherwise.',
      },
    };
  },
};
