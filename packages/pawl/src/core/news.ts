import { parseToken } from '../token.ts';
import type { Grant, News } from './commands.ts';
import { isNews } from './record-shapes.ts';
import type { Version } from './records.ts';

export function encodeNews(news: News): string {
  if (news.kind !== 'granted') return JSON.stringify(news);
  const grants = news.grants.map((grant) => ({ ...grant, token: grant.token?.toString() }));
  return JSON.stringify({ ...news, grants });
}

/**
 * Reads a message that a commit of `version` sent. A message is a hint: one that cannot be read is `undefined`
 * and costs its receiver a poll.
 */
export function decodeNews(message: string, version: Version): News | undefined {
  let news: unknown;
  try {
    news = JSON.parse(message);
  } catch {
    return undefined;
  }
  if (!isNews(news)) return undefined;
  if (news.kind !== 'granted') return news;
  const grants: Grant[] = news.grants.map((grant) => ({
    ...grant,
    token: parseToken(grant.token) ?? version,
  }));
  return { ...news, grants };
}
