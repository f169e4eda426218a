import { Pool, type PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type PostgresFence,
  type PostgresPoolClient,
  postgresFence,
} from '../../src/fences/postgres/index.ts';
import { PostgresServer, postgresPrograms } from '../engines/postgres-server.ts';
import { runDocumented } from '../engines/server-tools.ts';
import { databaseFence } from './database-fences.ts';
import { tellPauses } from './pauses.ts';

const bin = postgresPrograms();
const stale = expect.objectContaining({ code: 'PAWL_STALE_TOKEN' });
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });

describe.skipIf(bin === undefined)('the fence in Postgres', () => {
  const server = new PostgresServer(bin ?? '');
  const fence = postgresFence();
  let address: string;
  let pool: Pool;
  let made = 0;

  beforeAll(async () => {
    await server.start();
    address = `postgres://postgres@127.0.0.1:${server.port}/postgres`;
    pool = new Pool({ connectionString: address, max: 8 });
    pool.on('error', () => {});
    await pool.query('CREATE TABLE account (id int PRIMARY KEY, value int NOT NULL)');
    await pool.query('CREATE TABLE log (seq bigserial PRIMARY KEY, id int NOT NULL, token bigint NOT NULL)');
  }, 60_000);
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  const newAccount = async () => {
    made += 1;
    await pool.query('INSERT INTO account VALUES ($1, 0)', [made]);
    return { id: made, resource: `account:${made}` };
  };
  const set = (client: PostgresPoolClient, id: number, value: number) =>
    client.query('UPDATE account SET value = $2 WHERE id = $1', [id, value]);
  const get = async (id: number) =>
    (await pool.query('SELECT value FROM account WHERE id = $1', [id])).rows[0].value;
  const onConnection = async <T>(work: (client: PoolClient) => Promise<T>): Promise<T> => {
    const client = await pool.connect();
    try {
      return await work(client);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  };

  databaseFence(async () => {
    const { id, resource } = await newAccount();
    return {
      raise: (bearer) => fence.raise(pool, resource, bearer),
      write: (bearer, value) =>
        fence.transaction(pool, resource, bearer, async (client) => void (await set(client, id, value))),
      read: () => get(id),
      log: (bearer, undo) =>
        onConnection(async (client) => {
          await client.query('BEGIN');
          await fence.fenced(client, bearer, resource);
          const { token } = typeof bearer === 'object' && bearer !== null ? bearer : { token: bearer };
          await client.query('INSERT INTO log (id, token) VALUES ($1, $2)', [id, String(token)]);
          await client.query(undo ? 'ROLLBACK' : 'COMMIT');
        }),
      logged: async () => {
        const { rows } = await pool.query('SELECT token FROM log WHERE id = $1 ORDER BY seq', [id]);
        return rows.map((row) => BigInt(row.token));
      },
    };
  });

  it('S7: a check outside a transaction is refused, since it protects nothing', async () => {
    const { resource } = await newAccount();
    await expect(fence.fenced(pool, 1n, resource)).rejects.toThrow(usage);
    await onConnection((client) => expect(fence.fenced(client, 5n, resource)).rejects.toThrow(usage));
    await fence.raise(pool, resource, 1n);
  });

  it('S7: begin checks in the round trip of BEGIN, and what it refuses is over', async () => {
    const { id, resource } = await newAccount();
    await onConnection(async (client) => {
      const sent: string[] = [];
      const watched = {
        query: (text: string) => {
          sent.push(text);
          return client.query(text);
        },
      };
      await fence.begin(watched, 5n, resource);
      expect(sent.filter((text) => /BEGIN|CALL/.test(text))).toEqual([
        expect.stringMatching(/^BEGIN; CALL /),
      ]);
      await set(client, id, 7);
      await client.query('ROLLBACK');
      expect(await get(id)).toBe(0);
      await fence.raise(client, resource, 5n);
      await expect(fence.begin(client, 4n, resource)).rejects.toThrow(stale);
      // No transaction is left that this could be lost in.
      await set(client, id, 9);
    });
    expect(await get(id)).toBe(9);
  });

  it('S7: begin holds off a raise until its transaction ends, and is refused on a pool', async () => {
    const { id, resource } = await newAccount();
    const order: string[] = [];
    await onConnection(async (client) => {
      await fence.begin(client, 1n, resource);
      const late = fence.raise(pool, resource, 2n).then(() => order.push('raised'));
      await waitingFor(pool, 1);
      await set(client, id, 1);
      order.push('committing');
      await client.query('COMMIT');
      await late;
    });
    expect(order).toEqual(['committing', 'raised']);
    await expect(fence.begin(pool, 3n, resource)).rejects.toThrow(usage);
    await fence.raise(pool, resource, 2n);
  });

  it('S7: a refusal that nobody looks at undoes the whole transaction', async () => {
    const { id, resource } = await newAccount();
    await fence.raise(pool, resource, 5n);
    await onConnection(async (client) => {
      await client.query('BEGIN');
      await set(client, id, 7);
      await fence.fenced(client, 4n, resource).catch(() => {});
      await set(client, id, 8).catch(() => {});
      expect((await client.query('COMMIT')).command).toBe('ROLLBACK');
    });
    expect(await get(id)).toBe(0);
  });

  it('S7: check and effect are one step: a raise waits for the transaction, and an equal token does not', async () => {
    const { id, resource } = await newAccount();
    await fence.raise(pool, resource, 1n);
    const order: string[] = [];
    const raised = await onConnection(async (client) => {
      await client.query('BEGIN');
      await fence.fenced(client, 1n, resource);
      const late = fence.raise(pool, resource, 2n).then(() => order.push('raised'));
      await waitingFor(pool, 1);
      await set(client, id, 1);
      order.push('committing');
      await client.query('COMMIT');
      return late;
    });
    expect(raised).toBe(2);
    expect(order).toEqual(['committing', 'raised']);
    await onConnection(async (client) => {
      await client.query('BEGIN');
      await fence.fenced(client, 2n, resource);
      await fence.transaction(pool, resource, 2n, (other) => set(other, id, 2));
      await client.query('COMMIT');
    });
    expect(await get(id)).toBe(2);
  });

  it('S7: two newcomers that come at once do not stand in each other’s way', async () => {
    const { resource } = await newAccount();
    await fence.raise(pool, resource, 1n);
    for (let token = 2n; token < 30n; token += 4n) {
      const all = [0n, 1n, 2n, 3n].map((more) =>
        fence.transaction(pool, resource, token + more, () => 'done'),
      );
      const settled = await Promise.allSettled(all);
      for (const each of settled) if (each.status === 'rejected') expect(each.reason).toEqual(stale);
      expect(settled.at(-1)?.status).toBe('fulfilled');
    }
  });

  it('S7: several resources are honoured in one transaction, and an inner rollback undoes one', async () => {
    const [a, b] = [await newAccount(), await newAccount()];
    await onConnection(async (client) => {
      await client.query('BEGIN');
      await fence.fenced(client, 5n, a.resource);
      await client.query('SAVEPOINT inner_part');
      await fence.fenced(client, 9n, b.resource);
      await client.query('ROLLBACK TO inner_part');
      await client.query('COMMIT');
    });
    await expect(fence.raise(pool, a.resource, 4n)).rejects.toThrow(stale);
    await fence.raise(pool, b.resource, 8n);
  });

  it('S7: under REPEATABLE READ a raise that came later is a serialization failure, not a write', async () => {
    const { id, resource } = await newAccount();
    await fence.raise(pool, resource, 1n);
    await onConnection(async (client) => {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await client.query('SELECT 1 FROM account');
      await fence.raise(pool, resource, 2n);
      await expect(fence.fenced(client, 1n, resource)).rejects.toThrow(
        expect.objectContaining({ code: expect.stringMatching(/40001|PAWL_STALE_TOKEN/) }),
      );
    });
    expect(await get(id)).toBe(0);
  });

  it('an effect that throws is rolled back, and the connection goes back to the pool', async () => {
    const { id, resource } = await newAccount();
    const failing = fence.transaction(pool, resource, 1n, async (client: PoolClient) => {
      await set(client, id, 7);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await get(id)).toBe(0);
    expect(await fence.transaction(pool, resource, 1n, () => 'value')).toBe('value');
    expect(pool.idleCount).toBe(pool.totalCount);
  });

  it('an effect that hides a failed statement is told that nothing was committed', async () => {
    const { id, resource } = await newAccount();
    const hiding = fence.transaction(pool, resource, 1n, async (client) => {
      await set(client, id, 7);
      await client.query('SELECT 1 / 0').catch(() => {});
    });
    await expect(hiding).rejects.toThrow(usage);
    expect(await get(id)).toBe(0);
  });

  it('resources are fenced one by one, whatever their names', async () => {
    const names = [
      'a',
      'A',
      'a ',
      "o'clock",
      'a"; DROP TABLE account; --',
      '😀',
      '\\',
      '\n',
      '$1',
      'é',
      'e\u0301',
    ];
    for (const [i, name] of names.entries()) await fence.raise(pool, name, BigInt(i + 1));
    for (const [i, name] of names.entries()) {
      await expect(fence.raise(pool, name, BigInt(i))).rejects.toThrow();
      await fence.raise(pool, name, BigInt(i + 1));
    }
    await expect(fence.raise(pool, 'a\0', 1n)).rejects.toThrow(usage);
    await expect(fence.raise(pool, 'a\x1e', 1n)).rejects.toThrow(usage);
    await expect(fence.raise(pool, '', 1n)).rejects.toThrow(usage);
  });

  it('bounds how far a bare token may jump, where it is told to', async () => {
    const { resource } = await newAccount();
    const bounded = postgresFence({ maxJump: 100n });
    await bounded.raise(pool, resource, 100n);
    await expect(bounded.raise(pool, resource, 201n)).rejects.toThrow(
      expect.objectContaining({ code: 'PAWL_TOKEN_JUMP', highest: 100n }),
    );
    await bounded.raise(pool, resource, 200n);
    await expect(bounded.raise(pool, `${resource}/other`, 101n)).rejects.toThrow(
      expect.objectContaining({ code: 'PAWL_TOKEN_JUMP', highest: undefined }),
    );
  });

  describe('its tables', () => {
    const schemaOf = (name: string): { schema: string; of: PostgresFence } => ({
      schema: name,
      of: postgresFence({ schema: name }),
    });

    it('are made by whoever comes first, also by many at once', async () => {
      const fences = Array.from({ length: 6 }, () => postgresFence({ schema: 'at_once' }));
      await Promise.all(fences.map((each, i) => each.raise(pool, `r${i}`, 1n)));
      await expect(postgresFence({ schema: 'at_once' }).raise(pool, 'r3', 1n)).resolves.toBeUndefined();
    });

    it('are made in the user’s own transaction, and again after it was rolled back', async () => {
      const { of } = schemaOf('within');
      await onConnection(async (client) => {
        await client.query('BEGIN');
        await of.fenced(client, 5n, 'a');
        await of.fenced(client, 5n, 'b');
      });
      await of.raise(pool, 'a', 4n);
      await expect(of.raise(pool, 'a', 3n)).rejects.toThrow(stale);
    });

    it('of a newer Pawl are refused', async () => {
      const { schema, of } = schemaOf('newer');
      await of.migrate(pool);
      await pool.query(`UPDATE ${schema}.meta SET format = 99`);
      await expect(postgresFence({ schema }).raise(pool, 'a', 1n)).rejects.toThrow(
        expect.objectContaining({ code: 'PAWL_FENCE_VERSION', found: 99 }),
      );
    });

    it.each(['', 'A', 'a b', 'x; DROP', 'a'.repeat(41), 5])('are not made in a schema %j', (schema) => {
      expect(() => postgresFence({ schema: schema as string })).toThrow(usage);
    });

    it('a program without the right to create uses what was made for it', async () => {
      await pool.query(
        `CREATE ROLE program LOGIN; GRANT USAGE ON SCHEMA pawl_fence TO program;
         GRANT SELECT ON pawl_fence.meta TO program; GRANT SELECT, INSERT, UPDATE ON pawl_fence.token TO program`,
      );
      const own = new Pool({ connectionString: address.replace('postgres@', 'program@'), max: 1 });
      await postgresFence().transaction(own, 'of a program', 3n, () => {});
      await own.end();
      await expect(fence.raise(pool, 'of a program', 2n)).rejects.toThrow(stale);
    });
  });

  describe('the programs of the documentation', () => {
    const run = (also?: string) => {
      const env = {
        PGHOST: '127.0.0.1',
        PGPORT: String(server.port),
        PGUSER: 'postgres',
        PGDATABASE: 'documented',
      };
      return runDocumented('postgres', env, 'fences', also);
    };
    beforeAll(() => pool.query('CREATE DATABASE documented'));

    it('run', () => {
      expect(run()).toContain('"account:1" refused token 1, since it has honoured 2');
      expect(run('Kysely')).toBe('[ { paid: true } ]\n');
      expect(run('columnFence')).toBe('written: true\n');
    }, 60_000);
  });

  tellPauses('postgres', () => ({
    address,
    balance: async () => (await pool.query('SELECT value FROM account WHERE id = 0')).rows[0].value,
    reset: async () => {
      await pool.query('DELETE FROM account WHERE id = 0');
      await pool.query('INSERT INTO account VALUES (0, 100)');
    },
  }));
});

/** Resolves once so many connections wait for a lock. */
async function waitingFor(pool: Pool, count: number): Promise<void> {
  for (;;) {
    const { rows } = await pool.query(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
    );
    if (rows[0].n >= count) return;
  }
}
