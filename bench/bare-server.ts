/**
 * What the service could be at best: frames of JSON over WebSocket, and for each acquire the two rows of the size that the service writes,
 * flushed for all that came in the same turn. No queue, no session, no right is looked at, and any request is taken for one that may.
 *
 *   node bench/bare-server.ts FILE
 */
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { type WebSocket, WebSocketServer } from 'ws';

export type BareRequest = readonly [id: number, method: 'acquire' | 'release', lock: string, request: string];
export type BareAnswer = readonly [id: number, token: number];

const SESSION = '0'.repeat(32);
const LOCK_ROW = 'x'.repeat(330);
const REQUEST_ROW = 'x'.repeat(165);

const db = new DatabaseSync(process.argv[2] ?? ':memory:');
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4096');
db.exec('CREATE TABLE entry (key TEXT PRIMARY KEY, value TEXT, version INTEGER) STRICT, WITHOUT ROWID');
const begin = db.prepare('BEGIN IMMEDIATE');
const commit = db.prepare('COMMIT');
const put = db.prepare('INSERT OR REPLACE INTO entry (key, value, version) VALUES (?, ?, ?)');
const remove = db.prepare('DELETE FROM entry WHERE key = ?');

let version = 0;
let gathered: { readonly socket: WebSocket; readonly requests: readonly BareRequest[] }[] = [];

function answer([id, method, lock, request]: BareRequest): BareAnswer {
  const keys = [`lock/${lock}`, `req/${SESSION}/${request}`] as const;
  if (method === 'acquire') {
    version += 1;
    put.get(keys[0], LOCK_ROW, version);
    put.get(keys[1], REQUEST_ROW, version);
  } else for (const key of keys) remove.get(key);
  return [id, version];
}

function answerAll(): void {
  const all = gathered;
  gathered = [];
  begin.get();
  const answers = all.map(({ socket, requests }) => ({ socket, frame: requests.map(answer) }));
  commit.get();
  for (const { socket, frame } of answers) socket.send(JSON.stringify(frame));
}

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
server.on('connection', (socket) => {
  socket.on('message', (data) => {
    if (gathered.push({ socket, requests: JSON.parse(String(data)) }) === 1) setImmediate(answerAll);
  });
});
server.on('listening', () => console.log((server.address() as AddressInfo).port));
