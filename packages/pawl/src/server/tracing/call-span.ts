import type { Clock } from '../../clock.ts';
import type { GrantedLock } from '../../node/service.ts';
import { ERROR_STATUS, type PawlSpan } from '../../protocol/tracer.ts';
import { statusOf } from '../http/problem.ts';

/** From so high on an HTTP status says that the server is to blame. */
const LEAST_SERVER_ERROR = 500;

/** What became of a request. */
export interface CallEnd {
  /** The kind of its answer, or why there was none. */
  readonly outcome?: string;
  /** `OK` or the code of the error that it was answered with; missing where there was no answer. */
  readonly code?: string;
  readonly grants?: readonly Pick<GrantedLock, 'token'>[];
  /** What went wrong at the server. */
  readonly error?: unknown;
}

export interface CallSpanOptions {
  readonly span: PawlSpan;
  readonly clock: Clock;
  readonly isHttp: boolean;
  /** Called with what the tracer throws. */
  readonly onFailure: (error: unknown) => void;
}

/** The span of one request. It ends once, and whatever its tracer throws stays here. */
export class CallSpan {
  readonly #options: CallSpanOptions;
  readonly #startedMs: number;
  #queuedMs: number | undefined;
  #ended = false;

  constructor(options: CallSpanOptions) {
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
  }

  /** It is an acquire that stands in a queue, behind `ahead` others. */
  queued(ahead: number): void {
    if (this.#ended) return;
    this.#queuedMs = this.#options.clock.monotonicMs();
    this.#tell((span) => {
      span.setAttribute('pawl.queued', true);
      span.addEvent?.('pawl.queued', { 'pawl.ahead': ahead });
    });
  }

  /** The grant of what may have been in a queue comes as news, which can be faster than the answer that it waits. */
  grantedLater(grants: readonly GrantedLock[]): void {
    if (this.#ended) return;
    if (this.#queuedMs === undefined) this.#tell((span) => span.setAttribute('pawl.queued', true));
    this.#queuedMs ??= this.#startedMs;
    this.end({ outcome: 'granted', code: 'OK', grants });
  }

  end({ outcome, code, grants, error }: CallEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    const { clock, isHttp } = this.#options;
    this.#tell((span) => {
      if (outcome !== undefined) span.setAttribute('pawl.outcome', outcome);
      if (grants !== undefined)
        span.setAttribute('pawl.token', grants.map(({ token }) => token.toString()).join(' '));
      if (this.#queuedMs !== undefined)
        span.setAttribute('pawl.waited_ms', clock.monotonicMs() - this.#queuedMs);
      if (code === undefined) return;
      span.setAttribute('rpc.response.status_code', code);
      const status = code === 'OK' ? 200 : statusOf(code);
      if (isHttp) span.setAttribute('http.response.status_code', status);
      if (status < LEAST_SERVER_ERROR) return;
      span.setAttribute('error.type', code);
      if (error instanceof Error) span.recordException(error);
      span.setStatus({ code: ERROR_STATUS, message: code });
    });
    // Also where something before it failed.
    this.#tell((span) => span.end());
  }

  #tell(tell: (span: PawlSpan) => void): void {
    try {
      tell(this.#options.span);
    } catch (error) {
      this.#options.onFailure(error);
    }
  }
}
