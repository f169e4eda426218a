import type { RequestId } from '../../core/commands.ts';
import type { LockService, SessionEvent } from '../../node/service.ts';
import type { CallEnd, CallSpan } from './call-span.ts';

/** What tells of a session's events. */
type Teller = Pick<LockService, 'listen'>;

/**
 * The spans of acquires whose grant may come as news, for as long as anybody here listens to their session. Where nobody does (any
 * more), their client is gone or goes on at another server, and the end of the wait would not be heard of.
 */
export class Waits {
  /** By session and request; a session without a map is not listened to. */
  readonly #bySession = new Map<string, Map<string, CallSpan>>();

  /** The same teller, whose news are heard on their way. */
  hearing(teller: Teller): Teller {
    return {
      listen: (session, listener) => {
        const spans = new Map<string, CallSpan>();
        this.#bySession.set(session, spans);
        const stop = teller.listen(session, (event) => {
          hear(spans, event);
          listener(event);
        });
        return () => {
          stop();
          endAll(spans, { outcome: 'disconnected' });
          // It may be listened to anew.
          if (this.#bySession.get(session) === spans) this.#bySession.delete(session);
        };
      },
    };
  }

  /** An acquire that may wait is asked for. One with the same ids waited no longer than until now: its client asks again. */
  add({ session, request }: RequestId, span: CallSpan): void {
    const spans = this.#bySession.get(session);
    spans?.get(request)?.end({ outcome: 'repeated' });
    spans?.set(request, span);
  }

  has({ session, request }: RequestId, span: CallSpan): boolean {
    return this.#bySession.get(session)?.get(request) === span;
  }

  /** It is answered with something else than a place in a queue. */
  remove(id: RequestId, span: CallSpan): void {
    if (this.has(id, span)) this.#bySession.get(id.session)?.delete(id.request);
  }

  /** It waits no longer. */
  end({ session, request }: RequestId, end: CallEnd): void {
    const spans = this.#bySession.get(session);
    spans?.get(request)?.end(end);
    spans?.delete(request);
  }

  sessionOver(session: string): void {
    const end = { outcome: 'sessionEnded', code: 'PAWL_SESSION_ENDED' };
    endAll(this.#bySession.get(session) ?? new Map(), end);
  }
}

function hear(spans: Map<string, CallSpan>, event: SessionEvent): void {
  if (event.kind !== 'granted') return;
  spans.get(event.request)?.grantedLater(event.grants);
  spans.delete(event.request);
}

function endAll(spans: Map<string, CallSpan>, end: CallEnd): void {
  for (const span of spans.values()) span.end(end);
  spans.clear();
}
