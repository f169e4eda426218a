import { turn } from '../../clock.ts';
import type { Connection } from './connection.ts';
import { isBusy, storeError } from './failures.ts';
import type { Patience } from './patience.ts';

interface Look {
  /** @throws only where the database is busy. */
  run(): void;
  settle(): void;
  reject(error: unknown): void;
}

export interface SnapshotsOptions {
  readonly connection: Connection;
  readonly patience: Patience;
  /** @throws ClosedError */
  readonly checkOpen: () => void;
}

/** Looks at the database. All looks that come in the same turn share one snapshot, which costs as much as the look itself. */
export class Snapshots {
  readonly #options: SnapshotsOptions;
  #looks: Look[] = [];

  constructor(options: SnapshotsOptions) {
    this.#options = options;
  }

  /** @returns what `look` returned. */
  take<T>(look: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let settle = () => {};
      const run = () => {
        try {
          const value = look();
          settle = () => resolve(value);
        } catch (error) {
          if (isBusy(error)) throw error;
          // What one cannot read is no reason to fail the others.
          settle = () => reject(this.#failure(error));
        }
      };
      this.#looks.push({ run, settle: () => settle(), reject });
      if (this.#looks.length === 1) void this.#look();
    });
  }

  async #look(): Promise<void> {
    const { connection, patience, checkOpen } = this.#options;
    // Whoever reads in a loop must not keep everybody else waiting.
    await turn();
    const looks = this.#looks.splice(0);
    try {
      checkOpen();
      connection.checkFile();
      await patience.untilFree(() => {
        checkOpen();
        connection.read(() => {
          for (const { run } of looks) run();
        });
      });
    } catch (error) {
      for (const { reject } of looks) reject(this.#failure(error));
      return;
    }
    for (const { settle } of looks) settle();
  }

  #failure(error: unknown): unknown {
    return storeError(error, this.#options.connection.where, 'definite');
  }
}
