import type { Finding } from '../engine.ts';
import { unavailable } from './connection.ts';
import { dial } from './dial.ts';
import type { Keeper } from './keeper.ts';
import { dataOperation, NEW_SESSION } from './protocol.ts';

/** Where ZooKeeper tells of its ensemble. */
const CONFIG = '/zookeeper/config';
/** From so many servers on, the loss of one stops nothing. */
const ENOUGH_SERVERS = 3;
const SHORTEST_MS = 1;
const LONGEST_MS = 2 ** 31 - 1;
const WELCOME_LIMIT_MS = 2000;

/** Looks at how the servers are run, as far as anybody may ask. @throws EngineUnavailableError */
export async function checkServers(keeper: Keeper, minTtlMs: number): Promise<Finding[]> {
  const [config] = (await keeper.multiRead([dataOperation(CONFIG)])).results;
  const [shortestMs, longestMs] = await Promise.all([
    granted(keeper, SHORTEST_MS),
    granted(keeper, LONGEST_MS),
  ]);
  const findings: Finding[] = [
    {
      setting: `minSessionTimeout ${shortestMs} ms`,
      warning: shortestMs > minTtlMs ? `sessions of less are refused, but minTtlMs says ${minTtlMs}` : null,
    },
    { setting: `maxSessionTimeout ${longestMs} ms`, warning: null },
  ];
  // Without the right to read it nothing is known of the ensemble.
  if (config?.data === undefined) return findings;
  const servers = Math.max(1, config.data.toString().match(/^server\.\d+=(?!.*:observer)/gm)?.length ?? 0);
  const warning =
    servers < ENOUGH_SERVERS ? 'no lock can be acquired or renewed while one server is down' : null;
  return [{ setting: `${servers} voting server${servers === 1 ? '' : 's'}`, warning }, ...findings];
}

/** The timeout of a session for which `timeoutMs` is asked. */
async function granted({ access, clock }: Keeper, timeoutMs: number): Promise<number> {
  const connection = await dial({
    access,
    clock,
    timeoutMs,
    session: NEW_SESSION,
    lastZxid: 0n,
    welcomeLimitMs: WELCOME_LIMIT_MS,
    patienceMs: WELCOME_LIMIT_MS,
  });
  if (connection === 'expired') throw unavailable('it refused a new session', 'definite');
  await connection.closeSession();
  return connection.timeoutMs;
}
