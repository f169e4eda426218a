/** What a driver of AWS (SDK 3) says of a request that failed. */
export interface Failure {
  readonly name: string;
  /** `undefined` where no answer came. */
  readonly status: number | undefined;
  /** How often it was sent: the driver repeats by itself. */
  readonly attempts: number;
}

/** Reads what the driver threw. */
export function failureOf(error: unknown): Failure {
  const { name, $metadata } = (error ?? {}) as {
    name?: unknown;
    $metadata?: { httpStatusCode?: number; attempts?: number };
  };
  // Where the driver does not say how often it tried, it may have been more than once.
  return {
    name: String(name),
    status: $metadata?.httpStatusCode,
    attempts: $metadata?.attempts ?? Number.POSITIVE_INFINITY,
  };
}
