import { once } from 'node:events';
import { systemClock } from '../clock.ts';
import { StoreUnusableError } from '../errors.ts';
import { type LogEntry, serve as startServer } from '../server/index.ts';
import { EXIT } from './exit-codes.ts';
import { globalTracer } from './global-tracer.ts';
import type { Parsed } from './options.ts';
import { UsageError } from './parse.ts';
import { serveConfig } from './serve-config.ts';
import { defaultPath } from './store.ts';
import { openStore } from './store-address.ts';

const LEVELS = ['debug', 'info', 'warn', 'error', 'none'];

/** `pawl serve` */
export async function serve({ options }: Parsed<'serve'>): Promise<number> {
  const { db, trace, ...config } = serveConfig(options);
  const least = LEVELS.indexOf(options.log);
  if (least < 0) throw new UsageError(`--log must be one of ${LEVELS.join(', ')}, but was "${options.log}".`);
  const log = (entry: LogEntry) => {
    if (LEVELS.indexOf(entry.level) >= least) process.stderr.write(`${JSON.stringify(entry)}\n`);
  };
  const tracing = trace ? globalTracer() : undefined;
  const store = await openStore(db ?? defaultPath());
  try {
    const settings = { ...config, engine: store.engine, log, tracer: tracing?.tracer };
    const server = await startServer(settings).catch(refuseAddress);
    if (tracing?.isHeard === false) log(unheard());
    // Before anybody knows that it serves, and may want it to stop.
    const told = Promise.race(['SIGTERM', 'SIGINT', 'SIGHUP'].map((signal) => once(process, signal)));
    process.stdout.write(`Serving ${store.engine.guarantees.engine} at ${server.url}\n`);
    if (options.hint) process.stdout.write(hints(server.url));
    await told;
    await server.close();
    await tracing?.flush();
  } finally {
    await store.close();
  }
  return EXIT.ok;
}

/** What listening throws is none of ours, where the address is in use, or not this machine's, or not for this user. */
function refuseAddress(error: unknown): never {
  if (!(error instanceof Error && 'syscall' in error)) throw error;
  const detail = `${error.message}; choose another with --host or --port`;
  throw new StoreUnusableError('The address to listen on', detail, { cause: error });
}

function unheard(): LogEntry {
  const advice = 'register one before, such as by node --import; until then no span is kept';
  return { level: 'warn', event: 'noTracerProvider', atMs: systemClock.wallMs(), advice };
}

/** Three lines to try. */
function hints(url: string): string {
  // In the project's own folder the package is its sources.
  const fromSources = import.meta.url.endsWith('.ts') ? ' --conditions=pawl-source' : '';
  return `
Try it, in another terminal:
  npx pawl run deploy --server ${url} -- sh -c 'echo "token $PAWL_TOKEN"'
  curl ${url}/v1/locks
  node${fromSources} -e "require('pawl').connect('${url}').then((p) => p.withLock('deploy', (l) => console.log(l.token)).then(() => p.close()))"
`;
}
