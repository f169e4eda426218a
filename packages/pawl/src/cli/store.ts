import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { open } from '../client/open.ts';
import type { Pawl } from '../client/pawl.ts';
import type { Engine } from '../engines/engine.ts';
import { StoreUnusableError } from '../errors.ts';
import { openStore } from './store-address.ts';

/** Opens the store that a command names, for as long as `work` takes. */
export async function withStore<T>(
  db: string | undefined,
  work: (pawl: Pawl, engine: Engine) => Promise<T>,
): Promise<T> {
  const store = await openStore(db ?? defaultPath());
  const pawl = open(store.engine);
  try {
    return await work(pawl, store.engine);
  } finally {
    await pawl.close();
    await store.close();
  }
}

/** The locks that a command names: of a server, if it names one, or of a store. */
export async function withPawl<T>(
  { db, server }: { readonly db: string | undefined; readonly server: string | undefined },
  work: (pawl: Pawl) => Promise<T>,
): Promise<T> {
  if (server === undefined) return withStore(db, work);
  const { connect } = await import('../client/remote/connect.ts');
  const { PAWL_SERVER_TOKEN: token, PAWL_SERVER_CA: ca } = process.env;
  const pawl = await connect(server.split(','), {
    ...(token === undefined || token === '' ? {} : { token }),
    ...(ca === undefined || ca === '' ? {} : { tls: { ca } }),
  });
  try {
    return await work(pawl);
  } finally {
    await pawl.close();
  }
}

/** Only the default's directory is made: a path that somebody wrote is more likely a mistake than a wish. */
export function defaultPath(): string {
  const given = process.env.XDG_STATE_HOME ?? '';
  try {
    // The standard wants relative paths in the variable to be ignored.
    const state = isAbsolute(given) ? given : join(homedir(), '.local', 'state');
    const path = join(state, 'pawl', 'pawl.db');
    mkdirSync(dirname(path), { recursive: true });
    return path;
  } catch (cause) {
    const detail = `its directory cannot be made (${cause instanceof Error ? cause.message : cause}); name another by --db`;
    throw new StoreUnusableError('The default database', detail, { cause });
  }
}
