import type { Finding } from '../engine.ts';
import type { RedisConnection } from './client.ts';

/** What the settings of a Redis mean for its locks. Hosted ones often do not tell their settings. */
export async function redisFindings(connection: RedisConnection): Promise<readonly Finding[]> {
  const [appendonly, appendfsync, policy, maxmemory, info] = await Promise.all([
    setting(connection, 'appendonly'),
    setting(connection, 'appendfsync'),
    setting(connection, 'maxmemory-policy'),
    setting(connection, 'maxmemory'),
    connection.call('INFO', 'replication').then(String, () => ''),
  ]);
  const findings = [persistence(appendonly, appendfsync)];
  const evicts = policy?.startsWith('allkeys') && maxmemory !== '0';
  findings.push({
    setting: `maxmemory-policy ${policy ?? 'unknown'}`,
    warning: evicts ? 'when memory runs out Redis throws locks away, tokens included; use noeviction' : null,
  });
  const replicas = Number(/connected_slaves:(\d+)/.exec(info)?.[1] ?? 0);
  if (replicas > 0) {
    const warning = 'a failover to a replica takes back grants that it had not received, tokens included';
    findings.push({ setting: `replicas ${replicas}`, warning });
  }
  return findings;
}

function persistence(appendonly: string | undefined, appendfsync: string | undefined): Finding {
  if (appendonly === undefined) {
    return {
      setting: 'appendonly unknown',
      warning: 'Redis does not tell it; without persistence a restart forgets all locks',
    };
  }
  if (appendonly !== 'yes') {
    const warning =
      'a restart forgets all locks granted since the last snapshot, if there is one, tokens included';
    return { setting: `appendonly ${appendonly}`, warning };
  }
  const warnings: Readonly<Record<string, string | undefined>> = {
    everysec: 'a crash takes back up to a second of grants, tokens included; always keeps them',
    no: 'a crash of the machine takes back all grants the system had not yet written, tokens included; always keeps them',
  };
  return { setting: `appendfsync ${appendfsync ?? 'unknown'}`, warning: warnings[appendfsync ?? ''] ?? null };
}

async function setting(connection: RedisConnection, name: string): Promise<string | undefined> {
  try {
    const answer = await connection.call('CONFIG', 'GET', name);
    const value = Array.isArray(answer) ? answer[1] : (answer as Record<string, unknown>)[name];
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
