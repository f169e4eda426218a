/** A server of the run's own, on a free port and in a temporary directory, that can be killed and goes on with what it had stored. */
export interface DurableServer {
  /** Known once it has started. */
  readonly port: number;
  /** Resolves once it serves. */
  start(): Promise<void>;
  /** Ends it at once, as a crash would. */
  kill(): Promise<void>;
  /** Ends it for good, and removes what it had stored. */
  stop(): Promise<void>;
}
