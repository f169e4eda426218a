import type { EngineGuarantees, Finding } from '../engines/engine.ts';
import { etcdGuarantees } from '../engines/etcd/guarantees.ts';
import { memoryGuarantees } from '../engines/memory/index.ts';
import { postgresGuarantees } from '../engines/postgres/index.ts';
import { redisGuarantees } from '../engines/redis/index.ts';
import { redlockGuarantees } from '../engines/redlock/index.ts';
import { sqliteGuarantees } from '../engines/sqlite/index.ts';
import { zookeeperGuarantees } from '../engines/zookeeper/index.ts';
import { EXIT } from './exit-codes.ts';
import { toJson } from './json.ts';
import type { Parsed } from './options.ts';
import { withStore } from './store.ts';
import { printable } from './text.ts';

const ALL: readonly EngineGuarantees[] = [
  memoryGuarantees,
  sqliteGuarantees,
  postgresGuarantees,
  redisGuarantees,
  etcdGuarantees,
  zookeeperGuarantees,
  redlockGuarantees,
];

/** `pawl engines` */
export async function engines({ options }: Parsed<'engines'>): Promise<number> {
  const { db, json } = options;
  if (db === undefined) {
    process.stdout.write(json ? toJson(ALL) : `${ALL.map(table).join('\n\n')}\n`);
    return EXIT.ok;
  }
  return withStore(db, async (_pawl, engine) => {
    const { guarantees } = engine;
    const findings = (await engine.check?.()) ?? [];
    const text = `${table(guarantees)}\n\nas it is run:\n${findingLines(findings)}\n`;
    process.stdout.write(json ? toJson({ guarantees, findings }) : text);
    return EXIT.ok;
  });
}

function table(each: EngineGuarantees): string {
  return [
    each.engine,
    `  survives           ${each.survives}`,
    `  expiry             decided by ${each.expiryDecidedBy}`,
    `  tokens             rest on ${each.tokensRestOn}`,
    `  wake-up            ${each.wakeUp}`,
    `  grants durable     ${each.durable ? 'yes' : 'no'}`,
    `  mutual exclusion   ${each.mutualExclusion}`,
    `  needs fencing      yes`,
    `  shortest TTL       ${each.minTtlMs} ms, and an end is noticed within ${each.sweepMs} ms`,
  ].join('\n');
}

function findingLines(findings: readonly Finding[]): string {
  if (findings.length === 0) return '  nothing about its settings bears on the locks';
  return findings
    .map(({ setting, warning }) =>
      warning === null ? `  ok       ${printable(setting)}` : `  warning  ${printable(setting)}: ${warning}`,
    )
    .join('\n');
}
