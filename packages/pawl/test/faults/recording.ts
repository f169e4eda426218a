import type { GrantSeen, Operation } from '../../src/testing/index.ts';

/** What a worker says, one JSON a line: what it is about to ask, what it was answered, what it saw of a grant. */
export type Said =
  | { readonly kind: 'call'; readonly id: number; readonly atMs: number; readonly operation: Asked }
  /** An acquire goes to the node, in this session. */
  | { readonly kind: 'sent'; readonly id: number; readonly atMs: number; readonly session: string }
  | { readonly kind: 'return'; readonly id: number; readonly atMs: number; readonly reply: string }
  | ({ readonly kind: 'grant'; readonly id: number; readonly token: string } & Omit<GrantSeen, 'token'>)
  | { readonly kind: 'error'; readonly code: string }
  | { readonly kind: 'ready' | 'done' };

/** An operation before its answer; a token as text. */
export type Asked = {
  readonly client: string;
} /** Answered by a token, `refused`, `timedOut` or `unknown`. */ & (
  | { readonly kind: 'acquire'; readonly lock: string; readonly waits: boolean }
  /** Of what this acquire was granted. */
  | { readonly kind: 'release'; readonly acquire: number }
  | { readonly kind: 'write' | 'raise'; readonly resource: string; readonly token: string }
);

/** An acquire that takes longer, in ms, may have been asked for again because an answer was lost, and what the first did may be there yet. */
const SWIFT_MS = 25;

interface Call {
  readonly atMs: number;
  readonly operation: Asked;
  reply?: { readonly text: string; readonly atMs: number };
}

/** Puts together what a worker said, also one that was killed in the middle. */
export class Recording {
  readonly grants: GrantSeen[] = [];
  readonly codes = new Map<string, number>();
  readonly #calls = new Map<number, Call>();
  /** When each acquire was first sent in each session. */
  readonly #sent = new Map<number, Map<string, number>>();
  readonly #heldUntilMs = new Map<number, number>();
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  hear(said: Said): void {
    if (said.kind === 'call') this.#calls.set(said.id, said);
    if (said.kind === 'sent') {
      const sent = this.#sent.get(said.id) ?? new Map<string, number>();
      this.#sent.set(said.id, sent);
      if (!sent.has(said.session)) sent.set(said.session, said.atMs);
    }
    if (said.kind === 'return') {
      const call = this.#calls.get(said.id);
      if (call !== undefined) call.reply = { text: said.reply, atMs: said.atMs };
    }
    if (said.kind === 'grant') {
      this.grants.push({ ...said, token: BigInt(said.token) });
      this.#heldUntilMs.set(said.id, said.heldUntilMs);
    }
    if (said.kind === 'error') this.codes.set(said.code, (this.codes.get(said.code) ?? 0) + 1);
  }

  /** Every operation that can have had an effect that somebody saw. */
  operations(): Operation[] {
    const released = new Map<number, Call>();
    for (const call of this.#calls.values()) {
      const { operation, reply } = call;
      if (operation.kind === 'release' && reply?.text === 'released') released.set(operation.acquire, call);
    }
    return [...this.#calls].flatMap(([id, { operation, atMs, reply }]): Operation[] => {
      const times = { client: operation.client, calledAtMs: atMs, returnedAtMs: reply?.atMs ?? Infinity };
      if (operation.kind === 'acquire') {
        const acquired = this.#acquired(id, operation, times, reply?.text, released.get(id));
        return [...acquired, ...this.#earlier(id, operation)];
      }
      if (operation.kind === 'release') return [];
      const { kind, resource, token } = operation;
      const text = reply?.text;
      const known = text === 'accepted' || text === 'refused' ? text : 'unknown';
      return [{ kind, resource, token: BigInt(token), reply: known, ...times }];
    });
  }

  /** A grant and what ended it; a refusal; or what may have been left behind. */
  #acquired(
    id: number,
    { client, lock, waits }: Extract<Asked, { kind: 'acquire' }>,
    times: { client: string; calledAtMs: number; returnedAtMs: number },
    reply: string | undefined,
    release: Call | undefined,
  ): Operation[] {
    // Who holds is all that is known of sessions here, so each acquire counts as one.
    const session = `${this.#name} ${id}`;
    const asked = { kind: 'acquire', lock, session, waits, ...times } as const;
    const end = { kind: 'end', session, client, returnedAtMs: Infinity } as const;
    if (reply === undefined || !/^\d+$/.test(reply)) {
      if (reply === 'timedOut') return [{ ...asked, reply: 'refused', leftAtMs: Infinity }];
      const refused: Operation[] = reply === 'refused' ? [{ ...asked, reply }] : [];
      if (reply === 'refused' && times.returnedAtMs - times.calledAtMs < SWIFT_MS) return refused;
      // It may have been granted, or stand in the queue, until its session ends.
      const left: Operation = { ...asked, reply: 'unknown', returnedAtMs: Infinity };
      return [...refused, left, { ...end, calledAtMs: times.calledAtMs }];
    }
    const token = BigInt(reply);
    const acquire: Operation = { ...asked, reply: token };
    if (release?.reply !== undefined) {
      const { atMs } = release;
      const returnedAtMs = release.reply.atMs;
      return [
        acquire,
        { kind: 'release', lock, session, token, reply: 'released', client, calledAtMs: atMs, returnedAtMs },
      ];
    }
    // Of a grant under which nobody saw that it was in force, the session may have ended before the answer was heard.
    return [acquire, { ...end, calledAtMs: this.#heldUntilMs.get(id) ?? times.calledAtMs }];
  }

  /**
   * What may be left of it in sessions other than the last: an acquire whose session turns out to have ended begins anew in another, and what the
   * first asked for is there until it is buried, or comes late.
   */
  #earlier(id: number, { client, lock, waits }: Extract<Asked, { kind: 'acquire' }>): Operation[] {
    const earlier = [...(this.#sent.get(id) ?? [])].slice(0, -1);
    return earlier.flatMap(([inside, calledAtMs]): Operation[] => {
      const times = { client, calledAtMs, returnedAtMs: Infinity };
      const session = `${this.#name} ${id} in ${inside}`;
      return [
        { kind: 'acquire', lock, session, waits, reply: 'unknown', ...times },
        { kind: 'end', session, ...times },
      ];
    });
  }
}
