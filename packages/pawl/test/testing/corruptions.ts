import type { AcquireOperation, Operation, ReleaseOperation } from '../../src/testing/index.ts';
import { type CoreRun, type Moment, PERMITS, type Shape } from './core-run.ts';

/** A history in which one answer is wrong. */
export interface Corrupted {
  readonly operations: readonly Operation[];
  /** The one that cannot be explained. */
  readonly wrong: Operation;
}

export interface Corruption {
  readonly promise: string;
  readonly what: string;
  readonly shapes: readonly Shape[];
  /** `undefined` where the history has no place for it. */
  corrupt(run: CoreRun, shape: Shape): Corrupted | undefined;
}

type Granted = AcquireOperation & { readonly reply: bigint };

const LOCKS: readonly Shape[] = ['readers and writers', 'several locks', 'lock-delay'];
const ALL: readonly Shape[] = [...LOCKS, 'slots', 'barging'];

/** Each asks for one thing after the other, so only one order is possible. */
export const CORRUPTIONS: readonly Corruption[] = [
  {
    promise: 'S1',
    what: 'a token that came twice',
    shapes: ALL,
    corrupt: (run) => replaceToken(run, (earlier) => earlier.reply),
  },
  {
    promise: 'S1',
    what: 'a token that fell',
    shapes: ALL,
    corrupt: (run) => replaceToken(run, (earlier) => earlier.reply - 1n),
  },
  {
    promise: 'S1',
    what: 'a reader with a token that is not that of the run',
    shapes: LOCKS,
    corrupt: (run) => {
      const moment = run.moments.find(
        ({ holders, unburied }) => unburied === 0 && holders.length > 1 && holders[0]?.mode === 'shared',
      );
      const joiner =
        moment &&
        grants(run).find((each) => each.reply === moment.holders[0]?.token && each.lock === moment.lock);
      return joiner && replace(run, joiner, { ...joiner, reply: joiner.reply + 1n });
    },
  },
  {
    promise: 'S2',
    what: 'a writer beside a reader',
    shapes: LOCKS,
    corrupt: (run) =>
      intrude(run, ({ holders }) => holders[0]?.mode === 'shared', { mode: 'exclusive', reply: 10_000n }),
  },
  {
    promise: 'S2',
    what: 'a reader beside a writer',
    shapes: LOCKS,
    corrupt: (run) =>
      intrude(run, ({ holders }) => holders[0]?.mode === 'exclusive', { mode: 'shared', reply: 10_000n }),
  },
  {
    promise: 'S2',
    what: 'two writers',
    shapes: [...LOCKS, 'barging'],
    corrupt: (run) => intrude(run, ({ holders }) => holders[0]?.mode === 'exclusive', { reply: 10_000n }),
  },
  {
    promise: 'S2',
    what: 'two holders of one slot',
    shapes: ['slots'],
    corrupt: (run) =>
      intrude(run, ({ holders }) => holders.some(({ slot }) => slot === 1), {
        permits: PERMITS,
        slot: 1,
        reply: 10_000n,
      }),
  },
  {
    promise: 'S2',
    what: 'a slot beyond the last',
    shapes: ['slots'],
    corrupt: (run) => {
      const grant = grants(run)[0];
      return grant && replace(run, grant, { ...grant, slot: PERMITS });
    },
  },
  {
    promise: 'S2',
    what: 'a refusal while there was room and nobody waited',
    shapes: ALL,
    corrupt: (run, shape) => intrude(run, isFree(shape), { ...asked(shape), reply: 'refused' }),
  },
  {
    promise: 'S6',
    what: 'a time-out while there was room and nobody waited',
    shapes: ALL,
    corrupt: (run, shape) => intrude(run, isFree(shape), { ...asked(shape), waits: true, reply: 'refused' }),
  },
  {
    promise: 'S2',
    what: 'a reader refused beside readers, with no writer waiting',
    shapes: LOCKS,
    corrupt: (run) =>
      intrude(run, ({ holders, waiting }) => holders[0]?.mode === 'shared' && waiting === 0, {
        mode: 'shared',
        reply: 'refused',
      }),
  },
  {
    promise: 'S3',
    what: 'a grant to a session that had ended',
    shapes: ALL,
    corrupt: (run, shape) => {
      const end = run.operations.find(({ kind, returnedAtMs }) => kind === 'end' && returnedAtMs < Infinity);
      if (end?.kind !== 'end') return undefined;
      const slot = shape === 'slots' ? { slot: 0 } : {};
      return intrude(run, (moment) => moment.atMs > end.returnedAtMs && isFree(shape)(moment), {
        ...asked(shape),
        ...slot,
        session: end.session,
        reply: 10_000n,
      });
    },
  },
  {
    promise: 'S4',
    what: 'a release by one who does not hold',
    shapes: ALL,
    corrupt: (run) => {
      const late = releases(run).find(({ session, reply, calledAtMs }) => {
        const end = run.operations.find((each) => each.kind === 'end' && each.session === session);
        return reply === 'notHeld' && end !== undefined && end.returnedAtMs < calledAtMs;
      });
      return late && replace(run, late, { ...late, reply: 'released' });
    },
  },
  {
    promise: 'S4',
    what: 'a holder that was told that it does not hold',
    shapes: ALL,
    corrupt: (run) => {
      const good = releases(run).find(({ reply }) => reply === 'released');
      return good && replace(run, good, { ...good, reply: 'notHeld' });
    },
  },
];

function grants({ operations }: CoreRun): Granted[] {
  return operations.filter(
    (each): each is Granted =>
      each.kind === 'acquire' && typeof each.reply === 'bigint' && each.waits !== true,
  );
}

function releases({ operations }: CoreRun): ReleaseOperation[] {
  return operations.filter((each) => each.kind === 'release');
}

function replace(run: CoreRun, from: Operation, wrong: Operation): Corrupted {
  return { operations: run.operations.map((each) => (each === from ? wrong : each)), wrong };
}

/** A grant that gets a token which an earlier one leaves no room for. */
function replaceToken(run: CoreRun, choose: (earlier: Granted) => bigint): Corrupted | undefined {
  for (const later of grants(run)) {
    const earlier = grants(run).find(
      ({ lock, slot, reply, returnedAtMs }) =>
        lock === later.lock && slot === later.slot && reply < later.reply && returnedAtMs < later.calledAtMs,
    );
    if (earlier !== undefined) return replace(run, later, { ...later, reply: choose(earlier) });
  }
  return undefined;
}

/** One more acquire at a moment at which the core cannot have answered it so. */
function intrude(
  run: CoreRun,
  isMoment: (moment: Moment) => boolean,
  answer: Partial<AcquireOperation> & Pick<AcquireOperation, 'reply'>,
): Corrupted | undefined {
  const moment = run.moments.find((each) => each.unburied === 0 && isMoment(each));
  if (moment === undefined) return undefined;
  const { lock, atMs } = moment;
  const times = { calledAtMs: atMs, returnedAtMs: atMs + 1 };
  const intruder = { kind: 'acquire', lock, session: 'intruder', client: 'intruder', ...times } as const;
  const wrong: AcquireOperation = { ...intruder, ...answer };
  return { operations: [...run.operations, wrong], wrong };
}

function isFree(shape: Shape): (moment: Moment) => boolean {
  return ({ holders, waiting }) => waiting === 0 && holders.length < (shape === 'slots' ? PERMITS - 1 : 1);
}

function asked(shape: Shape): Partial<AcquireOperation> {
  return shape === 'slots' ? { permits: PERMITS } : {};
}
