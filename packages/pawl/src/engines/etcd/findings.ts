import type { Finding } from '../engine.ts';
import type { EtcdConnection, Method } from './connection.ts';
import { decodeMembers, decodeStatus, encodeNothing } from './messages.ts';

const statusMethod: Method<null, ReturnType<typeof decodeStatus>> = {
  path: '/etcdserverpb.Maintenance/Status',
  encode: encodeNothing,
  decode: decodeStatus,
};
const membersMethod: Method<null, number> = {
  path: '/etcdserverpb.Cluster/MemberList',
  encode: encodeNothing,
  decode: decodeMembers,
};

/** What the state of a cluster means for its locks. */
export async function etcdFindings(connection: EtcdConnection): Promise<readonly Finding[]> {
  const [status, members] = await Promise.all([
    connection.call(statusMethod, null, true),
    connection.call(membersMethod, null, true),
  ]);
  const findings: Finding[] = [
    {
      setting: `version ${status.version}`,
      warning: isOld(status.version) ? 'older than 3.4, which it needs' : null,
    },
    { setting: `members ${members}`, warning: membersWarning(members) },
  ];
  if (!status.hasLeader)
    findings.push({ setting: 'leader none', warning: 'most members are away; nothing can be granted' });
  for (const alarm of status.alarms)
    findings.push({ setting: `alarm ${alarm}`, warning: 'nothing can be granted until it is dealt with' });
  return findings;
}

function membersWarning(members: number): string | null {
  if (members === 1) return 'it survives the loss of no member';
  return members % 2 === 0 ? 'one member less would survive as many losses' : null;
}

function isOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < 3 || (major === 3 && minor < 4);
}
