import fc from 'fast-check';
import { expect, it } from 'vitest';
import { loopback } from '../../src/protocol/loopback.ts';
import { Outbox } from '../../src/protocol/outbox.ts';

it('whatever is posted arrives in its order, in frames no larger than allowed but for a message that is larger itself', async () => {
  const message = fc.string({ unit: 'binary', maxLength: 200, size: 'max' });
  const messages = fc.array(message, { maxLength: 70, size: 'max' });
  const limits = fc.record({
    frameBytes: fc.integer({ min: 10, max: 20_000 }),
    messagesPerFrame: fc.integer({ min: 1, max: 80 }),
  });
  await fc.assert(
    fc.asyncProperty(messages, limits, async (posted, { frameBytes, messagesPerFrame }) => {
      const [near, far] = loopback();
      const frames: string[] = [];
      far.start({ onFrame: (frame) => frames.push(frame), onClose: () => {} });
      const outbox = new Outbox(near, { frameBytes, messagesPerFrame });
      for (const message of posted) outbox.post(JSON.stringify(message));
      await new Promise((resolve) => setImmediate(resolve));
      const arrived = frames.map((frame): string[] => JSON.parse(frame));
      expect(arrived.flat()).toEqual(posted);
      for (const [i, list] of arrived.entries()) {
        expect(list.length).toBeLessThanOrEqual(messagesPerFrame);
        if (list.length > 1) expect(Buffer.byteLength(frames[i] ?? '')).toBeLessThanOrEqual(frameBytes);
      }
    }),
    { numRuns: 200 },
  );
});
