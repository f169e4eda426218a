import type { Owner } from '../core/records.ts';
import type { HolderState } from '../node/service.ts';

/** Text of others as it may be shown in one line: without characters that move the cursor or change the terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, (each) => {
    return `\\u{${each.codePointAt(0)?.toString(16)}}`;
  });
}

/** Who somebody is, in a line: host and process first, then whatever else was said. */
export function ownerText({ host, pid, ...rest }: Owner): string {
  const more = Object.entries(rest).map(([key, value]) => `${key}=${value}`);
  return printable([`${host ?? '?'}:${pid ?? '?'}`, ...more].join(' '));
}

export function holderText({ token, slot, mode, owner, lockDelay }: HolderState): string {
  const how = [`token ${token}`];
  if (mode === 'shared') how.push(`shared ${slot}`);
  else if (slot > 0) how.push(`slot ${slot}`);
  if (lockDelay) how.push('lost, lock-delay');
  return `${ownerText(owner)} (${how.join(', ')})`;
}
