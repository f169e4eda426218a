import type { Version } from './records.ts';

/** A key is at this version, or absent where the version is `null`. */
export interface Guard {
  readonly key: string;
  readonly version: Version | null;
}

export interface Put {
  readonly key: string;
  readonly value: string;
}

/** A message for an inbox, delivered after the commit that carries it. */
export interface Wake {
  readonly inbox: string;
  readonly message: string;
}

/**
 * A conditional write, which is all that a lock is: if every guard holds and every session in `alive` has not
 * ended, then all puts and deletes happen and the wakes are sent; else nothing does.
 */
export interface ConditionalWrite {
  readonly guards: readonly Guard[];
  readonly alive: readonly string[];
  readonly puts: readonly Put[];
  readonly deletes: readonly string[];
  readonly wakes: readonly Wake[];
}
