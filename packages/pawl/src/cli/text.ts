import type { Owner } from '../core/records.ts';
import type { HolderState } from '../node/service.ts';

/** Who somebody is, in a line: host and process first, then whatever else was said. */
export function ownerText({ host, pid, ...rest }: Owner): string {
  const more = Object.entries(rest).map(([key, value]) => `${key}=${value}`);
  return [`${host ?? '?'}:${pid ?? '?'}`, ...more].join(' ');
}

export function holderText({ token, slot, mode, owner, lockDelay }: HolderState): string {
  const how = [`token ${token}`];
  if (mode === 'shared') how.push(`shared ${slot}`);
  else if (slot > 0) how.push(`slot ${slot}`);
  if (lockDelay) how.push('lost, lock-delay');
  return `${ownerText(owner)} (${how.join(', ')})`;
}
