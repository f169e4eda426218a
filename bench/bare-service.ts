import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import type { BareAnswer, BareRequest } from './bare-server.ts';
import type { Contestant, LockClient } from './contestant.ts';

const PROGRAM = fileURLToPath(new URL('bare-server.ts', import.meta.url));

/** Frames and rows without any lock, by a server in a process of its own: no service of that make is faster. */
export function bareService(folder: string): Contestant {
  return {
    name: 'bare',
    kind: 'peer',
    waits: 'for nothing',
    connect: async () => {
      const server = spawn(process.execPath, [PROGRAM, join(folder, 'bare.db')], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [port] = await once(server.stdout, 'data');
      const socket = new WebSocket(`ws://127.0.0.1:${Number(port)}`, { perMessageDeflate: false });
      await once(socket, 'open');
      const client = bareClient(socket);
      return {
        ...client,
        close: async () => {
          socket.terminate();
          server.kill('SIGKILL');
          await once(server, 'exit');
        },
      };
    },
  };
}

function bareClient(socket: WebSocket): Pick<LockClient, 'acquire'> {
  const waiting = new Map<number, (answer: BareAnswer) => void>();
  let gathered: BareRequest[] = [];
  let requests = 0;
  const send = () => {
    socket.send(JSON.stringify(gathered));
    gathered = [];
  };
  const ask = (method: BareRequest[1], lock: string, request: string) =>
    new Promise<BareAnswer>((resolve) => {
      requests += 1;
      waiting.set(requests, resolve);
      if (gathered.push([requests, method, lock, request]) === 1) setImmediate(send);
    });
  socket.on('message', (data) => {
    for (const answer of JSON.parse(String(data)) as BareAnswer[]) {
      waiting.get(answer[0])?.(answer);
      waiting.delete(answer[0]);
    }
  });
  return {
    acquire: async (lock) => {
      const request = randomUUID();
      await ask('acquire', lock, request);
      return () => ask('release', lock, request);
    },
  };
}
