/*
 * A guard is a trigger on a table that looks at every write to it, whoever wrote the SQL: does its transaction carry a token that is
 * still the highest? What is common to the databases that have one.
 */

/** `audit` records a write without a current token and lets it pass; `enforce` refuses it. */
export type GuardMode = 'audit' | 'enforce';

export interface GuardOptions {
  /** The table to guard. */
  readonly table: string;
  /**
   * The resource whose token a write needs. `{column}` stands for the row's own value, as in `invoice:{id}`: then each row needs the token
   * of its own resource. Unless set, a current token of any resource will do.
   */
  readonly resource?: string;
  readonly mode: GuardMode;
}

/** A guard that is in force. */
export interface GuardState {
  readonly table: string;
  readonly mode: GuardMode;
  readonly resource: string | undefined;
}

/** Why a write was none of a current holder. */
export type UnfencedReason = 'no token' | 'stale token' | 'token of another resource';

/** Writes that a guard has let pass although they carried no current token: one entry for each way in which they come. */
export interface UnfencedWrites {
  readonly table: string;
  readonly operation: 'INSERT' | 'UPDATE' | 'DELETE' | 'TRUNCATE';
  readonly reason: UnfencedReason;
  /** What the program calls itself (`application_name`); `undefined` where the database knows no such thing. */
  readonly application: string | undefined;
  /** As whom it was logged in. */
  readonly role: string | undefined;
  /** The statement, shortened and without its values; in SQLite, which does not show it, the columns that an UPDATE changed. */
  readonly query: string | undefined;
  /** The row that was written last, where it is known. */
  readonly row: string | undefined;
  /** How many statements it were; in SQLite, how many rows. */
  readonly count: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
}

/** What the guards of a database are and what they have seen, the most frequent first. */
export interface GuardReport {
  readonly guards: readonly GuardState[];
  readonly unfenced: readonly UnfencedWrites[];
}
