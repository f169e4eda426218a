import { expect, it } from 'vitest';
import type { CommitResult, ConditionalWrite } from '../../src/engines/engine.ts';
import { OwnInboxes } from '../../src/engines/own-inboxes.ts';

const put = { guards: [], alive: [], puts: [{ key: 'x', value: '1' }], deletes: [] };
const to = (...inboxes: string[]): ConditionalWrite => ({
  ...put,
  wakes: inboxes.map((inbox) => ({ inbox, message: `to ${inbox}` })),
});

/** A store that answers as it is told and remembers what was sent through it. */
function store(...results: CommitResult[]) {
  const sent: string[][] = [];
  return {
    sent,
    commit: async (batch: readonly ConditionalWrite[]) => {
      for (const { wakes } of batch) sent.push(wakes.map(({ inbox }) => inbox));
      return results;
    },
  };
}

it('L3: what is for an inbox of the engine itself is told once it is committed, with its version, and not sent', async () => {
  const own = new OwnInboxes();
  const heard: unknown[] = [];
  own.subscribe(
    'mine',
    (message, version) => heard.push([message, version]),
    () => {},
  );
  const { sent, commit } = store({ kind: 'committed', version: 7n }, { kind: 'committed', version: 8n });
  const batch = [to('mine', 'yours', 'mine'), to()];
  const results = await own.commit(batch, (rest) => {
    expect(heard).toEqual([]);
    return commit(rest);
  });
  expect(results).toHaveLength(2);
  expect(sent).toEqual([['yours'], []]);
  expect(heard).toEqual([
    ['to mine', 7n],
    ['to mine', 7n],
  ]);
});

it('a write that does not happen wakes nobody, nor does one whose answer is lost', async () => {
  const own = new OwnInboxes();
  const heard: string[] = [];
  own.subscribe(
    'mine',
    (message) => heard.push(message),
    () => {},
  );
  const { commit } = store({ kind: 'conflict', keys: ['x'] }, { kind: 'sessionsEnded', sessions: ['s'] });
  await own.commit([to('mine'), to('mine')], commit);
  const lost = own.commit([to('mine')], () => Promise.reject(new Error('lost')));
  await expect(lost).rejects.toThrow('lost');
  expect(heard).toEqual([]);
});

it('who has stopped listening hears nothing, also of what is under way; each of several does until he stops', async () => {
  const own = new OwnInboxes();
  const heard: string[] = [];
  let stopped = 0;
  const listen = (who: string) =>
    own.subscribe(
      'mine',
      () => heard.push(who),
      () => {
        stopped += 1;
      },
    );
  const [stopOne, stopOther] = [listen('one'), listen('other')];
  const { sent, commit } = store({ kind: 'committed', version: 1n });
  await own.commit([to('mine')], async (rest) => {
    stopOne();
    return commit(rest);
  });
  expect([heard, stopped]).toEqual([['other'], 1]);
  stopOther();
  await own.commit([to('mine')], commit);
  expect(sent).toEqual([[], ['mine']]);
  own.close();
  expect([heard, stopped]).toEqual([['other'], 2]);
});
