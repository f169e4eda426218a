/** Keeps what was done. Each method is one atomic step, also among processes. */
export interface OnceStore {
  /**
   * Records that a run begins, where there is no record of the key, where that has expired, or (`takeOver`) where a run began and
   * has been over for `runMs` without an end. Otherwise changes nothing and says what is recorded.
   */
  begin(key: string, run: string, options: BeginOptions): OnceState | Promise<OnceState>;
  /**
   * Records that it was done, unless that is recorded already: the first to finish is right. For an operator too, who found out that it happened.
   *
   * @param value JSON, or empty for `undefined`.
   * @param keepMs how long the record lasts; for ever unless given.
   * @returns the value that is recorded now.
   */
  finish(key: string, value: string, keepMs: number | undefined): string | Promise<string>;
  /** Removes the record of a run that has not finished: it can be done again. For an operator too, who found out that it did not happen. */
  forget(key: string, run: string): void | Promise<void>;
  /** Records that a run is over without anybody knowing whether it was done. */
  giveUp(key: string, run: string): void | Promise<void>;
}

export interface BeginOptions {
  /** How long a run lasts at most; what takes longer counts as crashed. */
  readonly runMs: number;
  readonly takeOver: boolean;
}

export type OnceState =
  | {
      readonly state: 'begun';
      /** Whether another run began before, of which nobody knows whether it was done. */
      readonly repeat: boolean;
    }
  | { readonly state: 'running' }
  | { readonly state: 'unfinished'; readonly run: string }
  | { readonly state: 'done'; readonly value: string };

/** A run that began and did not end in time. */
export interface UnfinishedRun {
  readonly key: string;
  readonly run: string;
}
