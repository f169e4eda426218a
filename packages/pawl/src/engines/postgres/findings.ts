import type { Finding } from '../engine.ts';

/** What the settings of a Postgres mean for its locks. @param settings by name. */
export function findingsOf(settings: ReadonlyMap<string, string>): readonly Finding[] {
  const finding = (name: string, warning: (value: string) => string | null): Finding => {
    const value = settings.get(name) ?? 'unknown';
    return { setting: `${name} ${value === '' ? '(none)' : value}`, warning: warning(value) };
  };
  return [
    finding('server_version', (value) =>
      Number.parseInt(value, 10) >= 12 ? null : 'older than any it was tried with',
    ),
    finding('fsync', (value) =>
      value === 'on' ? null : 'a power loss can corrupt the database or take back grants',
    ),
    finding('full_page_writes', (value) => (value === 'on' ? null : 'a power loss can corrupt the database')),
    finding('synchronous_commit', (value) =>
      value === 'off' ? 'a crash takes back the grants of its last moments, tokens included' : null,
    ),
    finding('synchronous_standby_names', (value) =>
      value === ''
        ? 'a failover to a standby takes back grants that it had not received, tokens included'
        : null,
    ),
  ];
}
