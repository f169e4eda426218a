import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import { etcdEngine } from '../../src/engines/etcd/index.ts';
import { EtcdServer, gateway, haveEtcd } from './etcd-server.ts';

describe.skipIf(!haveEtcd())('an etcd that asks for users', () => {
  it('works for a user with a password, and says what is wrong with a bad one', async () => {
    const own = new EtcdServer();
    await own.start();
    try {
      await gateway(own, 'auth/user/add', { name: 'root', password: 'secret' });
      await gateway(own, 'auth/user/grant', { user: 'root', role: 'root' });
      await gateway(own, 'auth/enable', {});
      const account = { endpoints: own.endpoints, user: 'root' };
      await expect(etcdEngine({ ...account, password: 'wrong' })).rejects.toMatchObject({
        code: 'PAWL_ENGINE_UNAVAILABLE',
        outcome: 'definite',
        message: expect.stringContaining('invalid user ID or password'),
      });
      const engine = await etcdEngine({ ...account, password: 'secret' });
      const pawl = open(engine);
      const lease = await pawl.acquire('x');
      const next = pawl.acquire('x', { waitMs: 10_000 });
      // Its tokens of authentication are gone with it.
      await own.kill(0);
      await own.startMember(0);
      await lease.release();
      expect((await next).token).toBeGreaterThan(lease.token);
      await pawl.close();
      await engine.close();
    } finally {
      await own.stop();
    }
  }, 60_000);

  it('L5: goes on where its token of authentication is outdated, since somebody changed the users', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-etcd-keys-'));
    const [pub, priv] = [join(folder, 'pub.pem'), join(folder, 'priv.pem')];
    const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(pub, keys.publicKey.export({ type: 'spki', format: 'pem' }));
    writeFileSync(priv, keys.privateKey.export({ type: 'pkcs1', format: 'pem' }));
    const jwt = `jwt,pub-key=${pub},priv-key=${priv},sign-method=RS256,ttl=10m`;
    const own = new EtcdServer(1, undefined, { 'auth-token': jwt });
    await own.start();
    try {
      const root = { name: 'root', password: 'secret' };
      await gateway(own, 'auth/user/add', root);
      await gateway(own, 'auth/user/grant', { user: 'root', role: 'root' });
      await gateway(own, 'auth/enable', {});
      const engine = await etcdEngine({ endpoints: own.endpoints, user: 'root', password: 'secret' });
      const put = { guards: [], alive: [], puts: [{ key: 'x', value: '1' }], deletes: [], wakes: [] };
      await engine.commit([put]);
      const { token } = JSON.parse(await gateway(own, 'auth/authenticate', root));
      await gateway(own, 'auth/user/add', { name: 'other', password: 'x' }, { authorization: token });
      expect(await engine.commit([put])).toMatchObject([{ kind: 'committed' }]);
      await engine.close();
    } finally {
      await own.stop();
      rmSync(folder, { recursive: true });
    }
  }, 60_000);

  it('L3: watches go on with a new token of authentication where the old one ended', async () => {
    const own = new EtcdServer();
    await own.start();
    try {
      const root = { name: 'root', password: 'secret' };
      await gateway(own, 'auth/user/add', root);
      await gateway(own, 'auth/user/grant', { user: 'root', role: 'root' });
      await gateway(own, 'auth/enable', {});
      const openOne = () => etcdEngine({ endpoints: own.endpoints, user: 'root', password: 'secret' });
      const [engine, other] = [await openOne(), await openOne()];
      const heard: string[] = [];
      engine.subscribe('one', (message) => heard.push(message));
      await engine.read({ keys: [], ranges: [] });
      const { token } = JSON.parse(await gateway(own, 'auth/authenticate', root));
      await gateway(own, 'auth/disable', {}, { authorization: token });
      await gateway(own, 'auth/enable', {});
      engine.subscribe('two', (message) => heard.push(message));
      const wakes = ['one', 'two'].map((inbox) => ({ inbox, message: inbox }));
      await engine.read({ keys: [], ranges: [] });
      await other.commit([{ guards: [], alive: [], puts: [], deletes: [], wakes }]);
      await expect.poll(() => heard.toSorted()).toEqual(['one', 'two']);
      for (const each of [engine, other]) await each.close();
    } finally {
      await own.stop();
    }
  }, 60_000);
});
