import { describe, expect, it } from 'vitest';
import { lockKey, requestKey } from '../../packages/pawl/src/core/names.ts';
import { encodeLock, type Holder } from '../../packages/pawl/src/core/records.ts';
import { AcquireTimeoutError, HeldError, SessionEndedError } from '../../packages/pawl/src/errors.ts';
import { checkLinearizable, SimulatedTime } from '../../packages/pawl/src/testing/index.ts';
import { type About, Observations, type ObservedAcquire } from './observations.ts';
import { WatchedStore } from './stored-acquires.ts';

/** Clients that take a ms for everything, and what the store has of them. */
class Scene {
  readonly time = new SimulatedTime();
  readonly store = new WatchedStore();
  readonly seen = new Observations(this.time, this.store);
  readonly #holders: Holder[] = [];

  async granted(client: string, token: bigint, about: About = {}, slot = 0): Promise<ObservedAcquire> {
    const asked = this.seen.asked(client, ['a'], about);
    this.hold(asked, token, { slot });
    await this.answer(asked, token, slot);
    return asked;
  }

  /** What it was granted reaches whoever asked. */
  async answer(asked: ObservedAcquire, token: bigint, slot = 0): Promise<void> {
    await asked.answered(this.time.advance(1), () => [{ lock: 'a', token, slot }]);
  }

  /** @param error what it is answered, after so long. */
  async failed(client: string, error: Error, about: About = {}, afterMs = 1): Promise<void> {
    await this.fail(this.seen.asked(client, ['a'], about), error, afterMs);
  }

  async fail(asked: ObservedAcquire, error: Error, afterMs = 1): Promise<void> {
    const failing = this.time.advance(afterMs).then(() => Promise.reject(error));
    await asked.answered(failing, () => []).catch(() => {});
  }

  async released(asked: ObservedAcquire): Promise<void> {
    await asked.release(() => this.time.advance(1));
    this.leave(asked);
  }

  /** A holder in the store. */
  hold({ owner }: ObservedAcquire, token: bigint, rest: Partial<Holder> = {}): void {
    const usual = { session: 'first', request: 'r', mode: 'exclusive', slot: 0, inbox: 'i' } as const;
    this.#holders.push({ ...usual, token, owner, lockDelayMs: 0, ghost: false, ...rest });
    this.#write();
  }

  /** What an acquire holds in this session, or in any, is there no more. */
  leave({ owner: { asked } }: ObservedAcquire, session?: string): void {
    const left = this.#holders.filter((each) => {
      return each.owner.asked !== asked || (session !== undefined && each.session !== session);
    });
    this.#holders.splice(0, Infinity, ...left);
    this.#write();
  }

  /** A commit in which somebody asked and gave up. */
  passBy(): void {
    const guards = [{ key: lockKey('a'), version: null }];
    const deletes = [requestKey('another', 'r')];
    this.store.commit({ guards, alive: [], puts: [], deletes, wakes: [] }, this.time.nowMs);
  }

  async pass(): Promise<void> {
    await this.time.advance(10);
  }

  #write(): void {
    const rest = { permits: null, nextTicket: 0, waiting: 0, nextShared: 0 };
    const value = encodeLock({ holders: this.#holders, ...rest });
    const puts = this.#holders.length === 0 ? [] : [{ key: lockKey('a'), value }];
    const deletes = puts.length === 0 ? [lockKey('a')] : [];
    this.store.commit({ guards: [], alive: [], puts, deletes, wakes: [] }, this.time.nowMs);
  }
}

async function observe(play: (scene: Scene) => Promise<void>): Promise<string[]> {
  const scene = new Scene();
  await play(scene);
  return checkLinearizable(scene.seen.operations()).map(({ of }) => of);
}

const HELD = new HeldError('a');
const TIMED_OUT = new AcquireTimeoutError('a', 5);

describe('what the simulation observes', () => {
  it('S1, S2: explains holders one after the other, also where one vanished', async () => {
    const wrong = await observe(async (scene) => {
      const first = await scene.granted('first', 1n);
      await scene.pass();
      await scene.released(first);
      await scene.pass();
      (await scene.granted('second', 2n)).held();
      await scene.pass();
      await scene.granted('third', 3n);
    });
    expect(wrong).toEqual([]);
  });

  it('S2: shows a grant while another was still found to be in force', async () => {
    const wrong = await observe(async (scene) => {
      const first = await scene.granted('first', 1n);
      await scene.pass();
      await scene.granted('second', 2n);
      await scene.pass();
      first.held();
    });
    expect(wrong).toEqual(['lock "a"']);
  });

  it.each<[string, About]>([
    ['a reader beside a writer', { mode: 'shared' }],
    ['a permit of a slot that is held', { permits: 3 }],
  ])('S2: shows %s', async (_name, about) => {
    const wrong = await observe(async (scene) => {
      const first = await scene.granted('first', 1n, about.permits === undefined ? {} : about);
      await scene.pass();
      await scene.granted('second', 2n, about);
      await scene.pass();
      await scene.released(first);
    });
    expect(wrong).toEqual(['lock "a"']);
  });

  it('S2: a refusal needs a holder, and is not explained by one who is gone', async () => {
    const refuse = (isGone: boolean) =>
      observe(async (scene) => {
        const first = await scene.granted('first', 1n);
        await scene.pass();
        // Its session ended: nobody is told, but the store has it no more.
        if (isGone) scene.leave(first);
        await scene.pass();
        await scene.pass();
        await scene.failed('second', HELD);
      });
    expect(await refuse(false)).toEqual([]);
    expect(await refuse(true)).toEqual(['lock "a"']);
  });

  it('S6: a time-out needs somebody to wait for, and leaves nobody in the way', async () => {
    const wrong = await observe((scene) => scene.failed('first', TIMED_OUT, { waits: true }, 5));
    expect(wrong).toEqual(['lock "a"']);
    const good = async (scene: Scene) => {
      const first = await scene.granted('first', 1n);
      await scene.failed('second', TIMED_OUT, { waits: true }, 5);
      await scene.released(first);
    };
    expect(await observe(good)).toEqual([]);
    const refused = await observe(async (scene) => {
      await good(scene);
      await scene.pass();
      await scene.failed('third', HELD);
    });
    expect(refused).toEqual(['lock "a"']);
  });

  it('S6: what an acquire of unknown end may have left behind explains refusals until it is gone', async () => {
    const refuse = (isGone: boolean) =>
      observe(async (scene) => {
        const first = scene.seen.asked('first', ['a'], { waits: true });
        scene.hold(first, 1n);
        await scene.fail(first, new SessionEndedError('the engine ended it'));
        await scene.pass();
        if (isGone) scene.leave(first);
        await scene.pass();
        await scene.pass();
        await scene.failed('second', HELD);
      });
    expect(await refuse(false)).toEqual([]);
    expect(await refuse(true)).toEqual(['lock "a"']);
  });

  it('S1: one that began anew in another session holds on in the first, whose run of readers goes on', async () => {
    const join = (isGone: boolean) =>
      observe(async (scene) => {
        const shared = { mode: 'shared', waits: true } as const;
        const first = scene.seen.asked('first', ['a'], shared);
        scene.hold(first, 7n, { mode: 'shared' });
        await scene.pass();
        scene.hold(first, 7n, { mode: 'shared', session: 'second', slot: 1 });
        await scene.answer(first, 7n, 1);
        await scene.pass();
        await first.release(() => scene.time.advance(1));
        scene.leave(first, 'second');
        await scene.pass();
        if (isGone) scene.leave(first);
        await scene.pass();
        await scene.granted('second', 7n, shared, 2);
      });
    expect(await join(false)).toEqual([]);
    expect(await join(true)).toEqual(['lock "a"']);
  });

  it.each([
    ['refused', HELD, { waits: false }],
    ['timed out', TIMED_OUT, { waits: true }],
  ])(
    'S2, S6: what it still holds in its first session explains that one was %s in its second',
    async (_answer, error, about) => {
      const wait = (holds: boolean) =>
        observe(async (scene) => {
          const first = scene.seen.asked('first', ['a'], about);
          if (holds) {
            scene.hold(first, 1n);
            scene.hold(first, 2n, { session: 'second' });
          }
          await scene.fail(first, error, 5);
          scene.leave(first);
        });
      expect(await wait(true)).toEqual([]);
      expect(await wait(false)).toEqual(['lock "a"']);
    },
  );

  it('S6: whoever came and went in one commit explains who came to wait then, and nobody after', async () => {
    const wait = (before: boolean) =>
      observe(async (scene) => {
        if (before) scene.passBy();
        await scene.pass();
        const first = scene.seen.asked('first', ['a'], { waits: true });
        if (!before) scene.passBy();
        await scene.fail(first, TIMED_OUT, 5);
      });
    expect(await wait(false)).toEqual([]);
    expect(await wait(true)).toEqual(['lock "a"']);
  });

  it('a ghost is what is left of whom it stands in for', async () => {
    const wrong = await observe(async (scene) => {
      const first = await scene.granted('first', 1n);
      await scene.pass();
      scene.leave(first);
      scene.hold(first, 1n, { session: 'ghost', ghost: true });
      await scene.pass();
      await scene.failed('second', HELD);
      scene.leave(first);
      await scene.granted('third', 2n);
    });
    expect(wrong).toEqual([]);
  });

  it('S7: shows a fence that honours a token lower than one before', async () => {
    const wrong = await observe(async ({ seen, time }) => {
      seen.fenced('raise', 'a', 2n, 'accepted');
      await time.advance(1);
      seen.fenced('write', 'a', 1n, 'accepted');
    });
    expect(wrong).toEqual(['resource "a"']);
  });
});
