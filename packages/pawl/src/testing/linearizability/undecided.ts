import { PawlError } from '../../errors.ts';

/** Whether a history is linearizable was not found out within the limit; it is neither yes nor no. */
export class HistoryUndecidedError extends PawlError {
  readonly code = 'PAWL_HISTORY_UNDECIDED';
  readonly maxStates: number;

  /** @param of the lock or resource, in words. */
  constructor(of: string, maxStates: number) {
    super(
      `Whether the history of ${of} is linearizable is undecided after ${maxStates} states; raise maxStates, record less at once, or find out more outcomes.`,
    );
    this.maxStates = maxStates;
  }
}
