import { requestPrefix } from '../core/names.ts';
import type { Engine } from '../engines/engine.ts';

const PAGE = 1000;
/** What the keys of all requests begin with, whatever their session. */
const ALL_REQUESTS = requestPrefix('').slice(0, -1);

/**
 * Gives every live session that holds or waits its whole TTL again, for those whose clients could not renew it while the server was
 * down. One without requests has nothing to lose, and its client renews it or opens another.
 *
 * @returns how many are alive.
 */
export async function renewSessions(engine: Engine): Promise<number> {
  let alive = 0;
  let after: string | undefined;
  let last = '';
  for (;;) {
    const entries = await engine.list(ALL_REQUESTS, PAGE, after);
    const sessions = new Set<string>();
    for (const { key } of entries) {
      const session = key.slice(ALL_REQUESTS.length, key.indexOf('/', ALL_REQUESTS.length));
      if (session !== last) sessions.add(session);
      last = session;
    }
    if (sessions.size > 0) alive += (await engine.keepAlive([...sessions])).size;
    if (entries.length < PAGE) return alive;
    after = entries.at(-1)?.key;
  }
}
