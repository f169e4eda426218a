import { describe, expect, it } from 'vitest';
import { AcquireTimeoutError, HeldError, SessionEndedError } from '../../packages/pawl/src/errors.ts';
import { checkLinearizable, SimulatedTime } from '../../packages/pawl/src/testing/index.ts';
import { type About, Observations, type ObservedAcquire } from './observations.ts';

/** Clients that take a ms for everything, and what the store has of them. */
class Scene {
  readonly time = new SimulatedTime();
  readonly stored = new Set<string>();
  readonly seen = new Observations(this.time, () => this.stored);

  async granted(client: string, token: bigint, about: About = {}, slot = 0): Promise<ObservedAcquire> {
    const asked = this.seen.asked(client, ['a'], about);
    this.stored.add(asked.owner.asked);
    await asked.answered(this.time.advance(1), () => [{ lock: 'a', token, slot }]);
    return asked;
  }

  /** @param error what it is answered, after so long. */
  async failed(client: string, error: Error, about: About = {}, afterMs = 1): Promise<void> {
    const asked = this.seen.asked(client, ['a'], about);
    const failing = this.time.advance(afterMs).then(() => Promise.reject(error));
    await asked.answered(failing, () => []).catch(() => {});
  }

  async released(asked: ObservedAcquire): Promise<void> {
    await asked.release(() => this.time.advance(1));
    this.stored.delete(asked.owner.asked);
  }

  async pass(): Promise<void> {
    await this.time.advance(10);
    this.seen.look();
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
        if (isGone) scene.stored.delete(first.owner.asked);
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
        scene.stored.add('0');
        await scene.failed('first', new SessionEndedError('the engine ended it'), { waits: true });
        await scene.pass();
        if (isGone) scene.stored.delete('0');
        await scene.pass();
        await scene.pass();
        await scene.failed('second', HELD);
      });
    expect(await refuse(false)).toEqual([]);
    expect(await refuse(true)).toEqual(['lock "a"']);
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
