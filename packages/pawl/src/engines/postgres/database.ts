import { type Clock, sleep } from '../../clock.ts';
import { EngineUnavailableError, type ErrorOutcome } from '../../errors.ts';

/** What the engine calls on a pool: that of `pg` has it. Typed by structure, so that nobody needs its types. */
export interface PostgresPool {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  connect(): Promise<PostgresClient>;
}

/** A connection of the engine's own, to listen on. */
export interface PostgresClient {
  query(text: string): Promise<unknown>;
  on(
    event: 'notification',
    listener: (notification: { channel: string; payload?: string | undefined }) => void,
  ): unknown;
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown;
  release(destroy?: boolean): void;
}

/** How long a statement may take to be answered, in ms. */
const ANSWER_LIMIT_MS = 5000;
/** So often a statement is repeated that Postgres rolled back for another's sake. */
const REPETITIONS = 5;
/** Serialization failure and deadlock: rolled back, and to be repeated. */
const REPEAT = new Set(['40001', '40P01']);
/** The connection could not be made at all. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENOENT',
  '57P03',
  '53300',
  '28P01',
  '28000',
  '3D000',
]);
/** The server went away while it worked. */
const CUT_OFF = /^(57P0[12]|08)/;

/** Statements on the user's pool, with Pawl's errors. */
export class Database {
  readonly pool: PostgresPool;
  readonly clock: Clock;

  constructor(pool: PostgresPool, clock: Clock) {
    this.pool = pool;
    this.clock = clock;
  }

  /** @param values `undefined` for a text of several statements. @throws EngineUnavailableError */
  async query<Row>(text: string, values: unknown[] | undefined): Promise<Row[]> {
    for (let left = REPETITIONS; ; left -= 1) {
      try {
        const { rows } = await this.#answered(this.pool.query(text, values));
        return rows as Row[];
      } catch (error) {
        if (!REPEAT.has(codeOf(error)) || left === 0) throw unavailable(error);
        await sleep(this.clock, REPETITIONS - left + 1, { keepProcess: false });
      }
    }
  }

  /** Waits for what has to be so before anything is asked. @throws EngineUnavailableError where that takes too long. */
  async until(ready: Promise<unknown>): Promise<void> {
    try {
      await this.#answered(ready);
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error);
      const message = `Postgres gave no connection to listen on: ${said}. Check that it is up, and that the pool has one to spare.`;
      throw new EngineUnavailableError(message, 'definite', { cause: error });
    }
  }

  async #answered<T>(answer: Promise<T>): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const fail = () => reject(new Error(`no answer within ${ANSWER_LIMIT_MS} ms`));
    const timer = this.clock.setTimer(ANSWER_LIMIT_MS, fail, { keepProcess: false });
    try {
      return await Promise.race([answer, late]);
    } finally {
      timer.cancel();
      answer.catch(() => {});
    }
  }
}

function unavailable(error: unknown): EngineUnavailableError {
  const said = error instanceof Error ? error.message : String(error);
  const message = `Postgres did not do what was asked: ${said}. Check that it is up and can be written.`;
  return new EngineUnavailableError(message, outcomeOf(error), { cause: error });
}

/** A statement that was refused with a reason was rolled back; one that was cut off may have been committed. */
function outcomeOf(error: unknown): ErrorOutcome {
  const code = codeOf(error);
  if (NOT_SENT.has(code)) return 'definite';
  return /^[0-9A-Z]{5}$/.test(code) && !CUT_OFF.test(code) ? 'definite' : 'indefinite';
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
