import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { parseCommand } from '../../src/cli/parse.ts';
import { serveConfig } from '../../src/cli/serve-config.ts';
import { serve } from '../../src/server/index.ts';
import { memoryEngine } from '../../src/testing/index.ts';
import { Bench } from './cli.ts';

const bench = new Bench();

describe('a server or a store: what stands on the command line goes before the environment', () => {
  const server = 'http://127.0.0.1:1';

  it('also where it is the same as a variable', () => {
    vi.stubEnv('PAWL_DB', 'locks.db').stubEnv('PAWL_SERVER', server);
    onTestFinished(() => void vi.unstubAllEnvs());
    const chosen = (...args: string[]) => {
      const { options } = parseCommand('ls', args);
      return [options.db, options.server];
    };
    expect(chosen('--db', 'locks.db')).toEqual(['locks.db', undefined]);
    expect(chosen('--db', 'other.db')).toEqual(['other.db', undefined]);
    expect(chosen('--server', server)).toEqual([undefined, server]);
    expect(chosen()).toEqual(['locks.db', server]);
    expect(() => chosen('--db', 'locks.db', '--server', server)).toThrow('cannot be given together');
  });

  it('and the lock is taken there', async () => {
    const env = { PAWL_SERVER: server };
    const { code, stderr } = await bench.start(['run', 'x', '--db', bench.db, '--', 'true'], env).ended;
    expect(code, stderr).toBe(0);
  });
});

describe('whoever stops reading', () => {
  it('the log of a server does not end the server', async () => {
    const server = bench.start(['serve', '--port', '0', '--log', 'debug']);
    await server.prints('Serving');
    const url = /at (\S+)/.exec(server.stdout)?.[1] ?? '';
    server.child.stderr?.destroy();
    const headers = { 'content-type': 'application/json' };
    // Each tells the log of a connection, or of a token that is none.
    for (let i = 0; i < 3; i += 1) {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/session`, 'pawl.v1');
      await new Promise((resolve) => socket.addEventListener('message', resolve, { once: true }));
      socket.close();
      const body = '{"ttlMs": 1000}';
      const answer = await fetch(`${url}/v1/sessions`, { method: 'POST', headers, body });
      expect(answer.status).toBe(200);
    }
    server.child.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 0 });
  });

  it('top ends it', async () => {
    const { code, stdout } = await bench.shell('$PAWL top --every 100ms | head -n 1').ended;
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^pawl top: .*\n$/)]);
  });
});

describe('what cannot be used is said with its name, and is no defect of pawl', () => {
  it('the address of a server: in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await new Promise((resolve) => other.once('listening', resolve));
    const address = other.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    const { code, stderr } = await bench.run('serve', '--port', port);
    expect(code, stderr).toBe(69);
    expect(stderr).toMatch(/^pawl: The address to listen on cannot be used: .*EADDRINUSE.*--port\.\n$/m);
  });

  it('a flag in the file of a server: null is none, as it is no text and no number', () => {
    for (const flag of ['insecure', 'trace']) {
      const config = bench.path('config.json');
      writeFileSync(config, JSON.stringify({ [flag]: null }));
      const { options } = parseCommand('serve', ['--config', config]);
      expect(() => serveConfig(options)).toThrow(`${flag} must be true or false, but was null`);
    }
  });

  it('the file of the authority of a server, and a server that nobody can reach', async () => {
    const { connect } = await import('../../src/client/remote/connect.ts');
    const engine = memoryEngine();
    const server = await serve({ engine, port: 0 });
    onTestFinished(async () => {
      await server.close();
      await engine.close();
    });
    const url = server.url.replace('http', 'https');
    await expect(connect(url, { tls: { ca: bench.path('nowhere.pem') } })).rejects.toMatchObject({
      code: 'PAWL_STORE_UNUSABLE',
      message: expect.stringContaining('tls.ca'),
    });
    const nonsense = '-----BEGIN NONSENSE-----';
    await expect(connect(url, { tls: { cert: nonsense, key: nonsense } })).rejects.toMatchObject({
      code: 'PAWL_INVALID_ARGUMENT',
    });
    // TLS on a port without it: the reason is told.
    await expect(connect(url)).rejects.toMatchObject({
      code: 'PAWL_ENGINE_UNAVAILABLE',
      message: expect.stringMatching(
        /within 5000 ms at wss:\S+ The server at wss:\S+ cannot be reached: .*\w/s,
      ),
    });
  });
});
