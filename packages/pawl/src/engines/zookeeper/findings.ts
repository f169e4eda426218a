import type { Finding } from '../engine.ts';
import { unavailable } from './connection.ts';
import { dial } from './dial.ts';
import type { Keeper } from './keeper.ts';
import { dataOperation, NEW_SESSION } from './protocol.ts';

/** Where ZooKeeper tells of its ensemble. */
const CONFIG = '/zookeeper/config';
const SHORTEST_MS = 1;
const LONGEST_MS = 2 ** 31 - 1;
const WELCOME_LIMIT_MS = 2000;

/** How the servers are run, as far as anybody may ask. @throws EngineUnavailableError */
export async function zookeeperFindings(keeper: Keeper, minTtlMs: number): Promise<Finding[]> {
  const [config] = (await keeper.multiRead([dataOperation(CONFIG)])).results;
  const [shortestMs, longestMs] = await Promise.all([
    granted(keeper, SHORTEST_MS),
    granted(keeper, LONGEST_MS),
  ]);
  const tooShort = `sessions shorter than that are refused, but minTtlMs is ${minTtlMs}`;
  const findings: Finding[] = [
    { setting: `minSessionTimeout ${shortestMs}`, warning: shortestMs > minTtlMs ? tooShort : null },
    { setting: `maxSessionTimeout ${longestMs}`, warning: null },
  ];
  // Without the right to read it nothing is known of the ensemble.
  if (config?.data === undefined) return findings;
  const voting = config.data.toString().match(/^server\.\d+=(?!.*:observer)/gm) ?? [];
  const servers = Math.max(1, voting.length);
  const warning = servers < 3 ? 'it survives the loss of no server' : null;
  return [{ setting: `servers ${servers}`, warning }, ...findings];
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
