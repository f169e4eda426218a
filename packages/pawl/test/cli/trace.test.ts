import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/client/remote/connect.ts';
import { works } from '../engines/server-tools.ts';
import { Bench, type Running } from './cli.ts';

const bench = new Bench();
const PACKAGES = ['@opentelemetry/api@1.9.0', '@opentelemetry/sdk-trace-base@2.12.1'];
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

/** Registers an SDK that sends nothing before it is told to, and writes what it sends to a file. */
const SDK = `
import { appendFileSync } from 'node:fs';
import { trace } from '@opentelemetry/api';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
const exporter = {
  export(spans, done) {
    for (const span of spans) {
      const { name, kind, attributes, status } = span;
      const events = span.events.map((event) => event.name);
      const ids = { traceId: span.spanContext().traceId, parent: span.parentSpanContext?.spanId };
      appendFileSync(process.env.SPANS, JSON.stringify({ name, kind, attributes, status, events, ...ids }) + '\\n');
    }
    done({ code: 0 });
  },
  shutdown: async () => {},
};
const spanProcessors = [new BatchSpanProcessor(exporter, { scheduledDelayMillis: 3_600_000 })];
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
`;

/** A user's project, with the packages in it. */
const project = mkdtempSync(join(tmpdir(), 'pawl-trace-'));
let installed = false;

beforeAll(() => {
  writeFileSync(join(project, 'package.json'), '{"private": true}');
  writeFileSync(join(project, 'sdk.mjs'), SDK);
  const flags = ['--prefix', project, '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  installed = works('npm', ['install', ...flags, ...PACKAGES]);
}, 300_000);
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** Starts a server in the project. */
async function serve(env: string): Promise<{ server: Running; url: string }> {
  const server = bench.shell(`cd '${project}' && ${env} exec $PAWL serve --port 0 --trace`);
  await server.prints('Serving');
  return { server, url: /Serving \w+ at (\S+)/.exec(server.stdout)?.[1] ?? '' };
}

describe('pawl serve --trace', () => {
  it('makes its spans with the tracer of an SDK that was loaded before it, also the last ones', async (test) => {
    test.skip(!installed, 'The packages of OpenTelemetry cannot be installed here.');
    const file = join(project, 'spans.jsonl');
    const sdk = pathToFileURL(join(project, 'sdk.mjs')).href;
    const { server, url } = await serve(`SPANS='${file}' NODE_OPTIONS='--import=${sdk}'`);
    const pawl = await connect(url);
    const owner = { traceparent: `00-${TRACE}-${PARENT}-01` };
    const held = await pawl.acquire('x', { owner });
    const waiting = pawl.acquire('x', { owner, waitMs: 60_000 });
    for await (const { waiting: count } of pawl.watch('x', { everyMs: 20 })) if (count === 1) break;
    await held.release();
    const lease = await waiting;
    await pawl.close();
    expect(existsSync(file)).toBe(false);
    server.child.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 0, stderr: expect.not.stringContaining('"warn"') });
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    const spans = lines.map((line) => JSON.parse(line));
    const acquires = spans.filter(({ name }) => name === 'pawl/acquire');
    const one = { kind: 1, traceId: TRACE, parent: PARENT, status: { code: 0 } };
    expect(acquires).toMatchObject([
      { ...one, events: [], attributes: { 'pawl.token': String(held.token) } },
      { ...one, events: ['pawl.queued'], attributes: { 'pawl.token': String(lease.token) } },
    ]);
    expect(spans.find(({ name }) => name === 'pawl/release')).toMatchObject(one);
    const [opened] = spans.filter(({ name }) => name === 'pawl/openSession');
    expect(opened.parent).toBeUndefined();
    expect(opened.traceId).not.toBe(TRACE);
  });

  it('works as docs/service.md shows it', async (test) => {
    test.skip(!installed, 'The packages of OpenTelemetry cannot be installed here.');
    const page = readFileSync(new URL('../../../../docs/service.md', import.meta.url), 'utf8');
    writeFileSync(join(project, 'tracing.mjs'), /^```js\n(.*?)^```/ms.exec(page)?.[1] ?? '');
    const [, variable = ''] = /^(NODE_OPTIONS=\S+) npx pawl serve --trace$/m.exec(page) ?? [];
    const { server, url } = await serve(variable);
    const pawl = await connect(url);
    await (await pawl.acquire('x')).release();
    await pawl.close();
    server.child.kill('SIGTERM');
    const { stdout } = await server.ended;
    for (const name of ['pawl/acquire', 'pawl/release']) expect(stdout).toContain(`name: '${name}'`);
  });

  it('says where no SDK is registered, and serves', async (test) => {
    test.skip(!installed, 'The packages of OpenTelemetry cannot be installed here.');
    const { server, url } = await serve('');
    const pawl = await connect(url);
    await (await pawl.acquire('x')).release();
    await pawl.close();
    server.child.kill('SIGTERM');
    expect(await server.ended).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('noTracerProvider'),
    });
  });

  it('says what to install where the API is not, however tracing was asked for', async () => {
    writeFileSync(bench.path('config.json'), '{"port": 0, "trace": true}');
    const refused = { code: 64, stderr: expect.stringContaining('npm install @opentelemetry/api') };
    expect(await bench.run('serve', '--port', '0', '--trace')).toMatchObject(refused);
    expect(await bench.run('serve', '--config', bench.path('config.json'))).toMatchObject(refused);
    for (const value of ['1', 'true'])
      expect(await bench.start(['serve', '--port', '0'], { PAWL_TRACE: value }).ended).toMatchObject(refused);
  });

  it('refuses what is neither on nor unset', async () => {
    const variable = bench.start(['serve', '--port', '0'], { PAWL_TRACE: 'maybe' });
    expect(await variable.ended).toMatchObject({ code: 64, stderr: expect.stringContaining('PAWL_TRACE') });
    writeFileSync(bench.path('config.json'), '{"port": 0, "trace": "yes"}');
    const file = await bench.run('serve', '--config', bench.path('config.json'));
    expect(file).toMatchObject({ code: 64, stderr: expect.stringContaining('trace must be true or false') });
  });
});
