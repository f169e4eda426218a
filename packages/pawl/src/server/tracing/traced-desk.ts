import type { RequestId } from '../../core/commands.ts';
import type { Method } from '../../protocol/calls.ts';
import type { ResultOf } from '../../protocol/results.ts';
import { Desk, type DeskCall, type DeskOptions } from '../desk.ts';
import type { Exchange } from '../http/exchange.ts';
import { REFUSALS } from '../metrics/measured-service.ts';
import type { Principal } from '../principal.ts';
import type { CallEnd, CallSpan } from './call-span.ts';
import { endOf, type TracedCall, type Tracing } from './tracing.ts';

/** A desk that makes spans. It answers what the desk without them answers, at the same time. */
export class TracedDesk extends Desk {
  readonly #tracing: Tracing;

  constructor(options: DeskOptions, tracing: Tracing) {
    super(options);
    this.#tracing = tracing;
  }

  override perform<C extends DeskCall>(
    principal: Principal,
    call: C,
    exchange?: Exchange,
  ): Promise<ResultOf<C['method']>> {
    const span = isTraced(call) ? this.#tracing.start(call, exchange) : undefined;
    if (span !== undefined && call.method === 'acquire' && call.options.wait)
      this.#tracing.waits.add(call.id, span);
    const answer = super.perform(principal, call);
    if (span !== undefined) this.#follow(call, span, answer);
    else if (call.method === 'cancel') this.#followCancel(call.id, answer);
    return answer;
  }

  #follow(call: DeskCall, span: CallSpan, answer: Promise<ResultOf<Method>>): void {
    const { waits } = this.#tracing;
    const over = (end: CallEnd) => {
      if (call.method === 'acquire') waits.remove(call.id, span);
      span.end(end);
    };
    const answered = (result: ResultOf<Method>) => {
      if (call.method !== 'acquire' || !isQueued(result)) over(endOfAnswer(result));
      else {
        span.queued(result.ahead);
        if (!waits.has(call.id, span)) span.end({ outcome: 'queued', code: 'OK' });
      }
    };
    answer.then(answered, (error: unknown) => over(endOf(error)));
  }

  #followCancel(id: RequestId, answer: Promise<unknown>): void {
    answer.then(
      () => this.#tracing.waits.end(id, { outcome: 'cancelled' }),
      // It waits on, as far as anybody knows.
      () => {},
    );
  }
}

function isTraced(call: DeskCall): call is TracedCall {
  switch (call.method) {
    case 'openSession':
    case 'closeSession':
    case 'acquire':
    case 'release':
    case 'transfer':
    case 'breakHold':
      return true;
    default:
      return false;
  }
}

function isQueued(result: ResultOf<Method>): result is { kind: 'queued'; ahead: number } {
  return typeof result === 'object' && result !== null && 'kind' in result && result.kind === 'queued';
}

function endOfAnswer(result: ResultOf<Method>): CallEnd {
  if (typeof result !== 'object' || result === null || !('kind' in result)) return { code: 'OK' };
  const { kind: outcome } = result;
  if ('grants' in result) return { outcome, code: 'OK', grants: result.grants };
  const codes: Readonly<Record<string, string>> = CODES;
  return { outcome, code: codes[outcome] ?? 'OK' };
}

/** What each answer that is a refusal is called as an error. */
const CODES = { ...REFUSALS, notHeld: 'PAWL_NOT_HELD' };
