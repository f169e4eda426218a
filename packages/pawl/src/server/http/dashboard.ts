import { readFile } from 'node:fs/promises';
import type { OutgoingHttpHeaders } from 'node:http';

/** Beside the sources and beside what is built of them, as browsers take it. */
const FOLDER = new URL('../../../dashboard/', import.meta.url);

const TYPES = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml; charset=utf-8',
};

/** By path, without the slash at the beginning. */
const FILES: ReadonlyMap<string, readonly [file: string, type: string]> = new Map([
  ['', ['index.html', TYPES.html]],
  ['dashboard/style.css', ['style.css', TYPES.css]],
  ['dashboard/icon.svg', ['icon.svg', TYPES.svg]],
  ...[
    'dom.js',
    'lock-panel.js',
    'lock-table.js',
    'locks.js',
    'metrics.js',
    'page.js',
    'server.js',
    'text.js',
    'trouble.js',
  ].map((file) => [`dashboard/${file}`, [file, TYPES.js]] as const),
]);

/**
 * The page shows names that strangers chose. It never takes them for HTML; if it did, none of it could run, nothing could be
 * fetched from elsewhere, and the browser would refuse to make elements of text at all.
 */
export const DASHBOARD_HEADERS: OutgoingHttpHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};

const read = new Map<string, Promise<string>>();

/**
 * A file of the dashboard, by its path without the slash at the beginning. Each is read once, when it is first asked for.
 *
 * @returns `undefined` where there is none.
 * @throws what reading it throws, where the package is not whole
 */
export async function dashboardFile(path: string): Promise<{ type: string; text: string } | undefined> {
  const [file, type] = FILES.get(path) ?? [];
  if (file === undefined || type === undefined) return undefined;
  let reading = read.get(file);
  if (reading === undefined) {
    reading = readFile(new URL(file, FOLDER), 'utf8');
    read.set(file, reading);
    reading.catch(() => read.delete(file));
  }
  return { type, text: await reading };
}
