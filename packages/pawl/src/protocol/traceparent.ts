/** A span as other processes know it. */
export interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

/** Nobody's is longer; what a later version of the format may add at its end is not looked at. */
const MOST_LENGTH = 256;
const FORM = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** Writes `traceparent` as the W3C's Trace Context, version 00, has it. */
export function writeTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** Reads a `traceparent`. @returns `undefined` for what is none: a trace that is lost is no reason to refuse anything. */
export function readTraceparent(value: unknown): SpanContext | undefined {
  if (typeof value !== 'string' || value.length > MOST_LENGTH) return undefined;
  const [, version, traceId, spanId, flags, more] = FORM.exec(value) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === '00' && more !== undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) };
}
