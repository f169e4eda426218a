import mysql, {
  type Pool,
  type PoolConnection,
  type ResultSetHeader,
  type RowDataPacket,
} from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_TOKEN } from '../../src/fences/index.ts';
import { columnFence, mysqlFence } from '../../src/fences/mysql/index.ts';
import { runDocumented } from '../engines/server-tools.ts';
import { databaseFence } from './database-fences.ts';
import { haveMariadb, MariadbServer } from './mariadb-server.ts';
import { tellPauses } from './pauses.ts';

const have = haveMariadb();
const stale = expect.objectContaining({ code: 'PAWL_STALE_TOKEN' });
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });

describe.skipIf(!have)('the fence in MariaDB', () => {
  const fence = mysqlFence();
  let server: MariadbServer;
  let pool: Pool;
  let made = 0;

  beforeAll(async () => {
    server = new MariadbServer();
    await server.start();
    pool = mysql.createPool({ uri: server.address, connectionLimit: 8 });
    await pool.query('CREATE TABLE account (id INT PRIMARY KEY, value INT NOT NULL)');
    await pool.query(
      'CREATE TABLE log (seq BIGINT AUTO_INCREMENT PRIMARY KEY, id INT NOT NULL, token BIGINT NOT NULL)',
    );
    await fence.migrate(pool);
  }, 90_000);
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  const newAccount = async () => {
    made += 1;
    await pool.query('INSERT INTO account VALUES (?, 0)', [made]);
    return { id: made, resource: `account:${made}` };
  };
  const set = (connection: PoolConnection, id: number, value: number) =>
    connection.query('UPDATE account SET value = ? WHERE id = ?', [value, id]);
  const get = async (id: number): Promise<number> => {
    const [rows] = await pool.query<RowDataPacket[]>('SELECT value FROM account WHERE id = ?', [id]);
    return rows[0]?.value;
  };
  const onConnection = async <T>(work: (connection: PoolConnection) => Promise<T>): Promise<T> => {
    const connection = await pool.getConnection();
    try {
      return await work(connection);
    } finally {
      await connection.query('ROLLBACK');
      connection.release();
    }
  };

  databaseFence(async () => {
    const { id, resource } = await newAccount();
    return {
      raise: (bearer) => fence.raise(pool, resource, bearer),
      write: (bearer, value) =>
        fence.transaction(
          pool,
          resource,
          bearer,
          async (connection) => void (await set(connection, id, value)),
        ),
      read: () => get(id),
      log: (bearer, undo) =>
        onConnection(async (connection) => {
          await connection.query('START TRANSACTION');
          await fence.fenced(connection, bearer, resource);
          await connection.query('INSERT INTO log (id, token) VALUES (?, ?)', [id, String(bearer)]);
          await connection.query(undo ? 'ROLLBACK' : 'COMMIT');
        }),
      logged: async () => {
        const sql = 'SELECT CAST(token AS CHAR) AS token FROM log WHERE id = ? ORDER BY seq';
        const [rows] = await pool.query<RowDataPacket[]>(sql, [id]);
        return rows.map((row) => BigInt(row.token));
      },
    };
  }, isDeadlock);

  it('S7: a check outside a transaction is refused, since it protects nothing', async () => {
    const { resource } = await newAccount();
    await expect(fence.fenced(pool, 1n, resource)).rejects.toThrow(usage);
    await onConnection((connection) => expect(fence.fenced(connection, 5n, resource)).rejects.toThrow(usage));
  });

  it('S7: check and effect are one step: a raise waits for the transaction', async () => {
    const { id, resource } = await newAccount();
    const order: string[] = [];
    const raised = await onConnection(async (connection) => {
      await connection.query('START TRANSACTION');
      await fence.fenced(connection, 1n, resource);
      const late = fence.raise(pool, resource, 2n).then(() => order.push('raised'));
      await someoneWaits(pool);
      await set(connection, id, 1);
      order.push('committing');
      await connection.query('COMMIT');
      return late;
    });
    expect(raised).toBe(2);
    expect(order).toEqual(['committing', 'raised']);
    await expect(fence.raise(pool, resource, 1n)).rejects.toThrow(stale);
    expect(await get(id)).toBe(1);
  });

  it('S7: a snapshot that is older than the raise does not let a stale token through', async () => {
    const { id, resource } = await newAccount();
    await fence.raise(pool, resource, 1n);
    await onConnection(async (connection) => {
      await connection.query('START TRANSACTION');
      await connection.query('SELECT * FROM pawl_fence');
      await fence.raise(pool, resource, 2n);
      await expect(fence.fenced(connection, 1n, resource)).rejects.toThrow(
        expect.objectContaining({ highest: 2n }),
      );
    });
    expect(await get(id)).toBe(0);
  });

  it('an effect that throws is rolled back, and what it returns is returned', async () => {
    const { id, resource } = await newAccount();
    const failing = fence.transaction(pool, resource, 1n, async (connection) => {
      await set(connection, id, 7);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await get(id)).toBe(0);
    expect(await fence.transaction(pool, resource, 1n, () => 'value')).toBe('value');
  });

  it('S7: an effect that hides that its transaction was ended writes nothing past the fence, and is told so', async () => {
    const { id, resource } = await newAccount();
    const first = made + 1;
    for (let each = 0; each < 30; each += 1) await newAccount();
    await onConnection(async (other) => {
      await other.query('START TRANSACTION');
      // InnoDB ends the transaction that has changed less, whichever waits last.
      await other.query('UPDATE account SET value = 9 WHERE id >= ?', [first]);
      const hidden = fence.transaction(pool, resource, 5n, async (connection) => {
        await set(connection, id, 1);
        const waiting = set(other, id, 9);
        await expect(set(connection, first, 1)).rejects.toMatchObject({ errno: 1213 });
        await waiting;
        await other.query('COMMIT');
        await fence.raise(pool, resource, 6n);
        await set(connection, id, 2);
      });
      await expect(hidden).rejects.toThrow(
        expect.objectContaining({ code: 'PAWL_FENCE_USAGE', message: expect.stringContaining('deadlock') }),
      );
    });
    expect(await get(id)).toBe(9);
    await expect(fence.transaction(pool, resource, 5n, () => {})).rejects.toThrow(stale);
  });

  it('S7: what an effect writes after a statement that commits is rolled back', async () => {
    const { id, resource } = await newAccount();
    const committing = fence.transaction(pool, resource, 5n, async (connection) => {
      await set(connection, id, 1);
      await connection.query('CREATE TABLE IF NOT EXISTS account_2 (id INT PRIMARY KEY)');
      await set(connection, id, 2);
    });
    await expect(committing).rejects.toThrow(usage);
    expect(await get(id)).toBe(1);
  });

  it.each([0, 1])('leaves autocommit as it was (%i)', async (autocommit) => {
    const { id, resource } = await newAccount();
    const own = mysql.createPool({ uri: server.address, connectionLimit: 1 });
    await own.query('SET autocommit = ?', [autocommit]);
    const effects = [
      (connection: PoolConnection) => set(connection, id, 1),
      () => Promise.reject(new Error('no')),
    ];
    for (const effect of effects) {
      await fence.transaction(own, resource, 1n, effect).catch((error) => expect(error.message).toBe('no'));
      const [rows] = await own.query<RowDataPacket[]>('SELECT @@autocommit AS autocommit');
      expect(rows).toEqual([{ autocommit }]);
    }
    expect(await get(id)).toBe(1);
    await own.end();
  });

  it('S7: an equal token is accepted also where the driver does not count rows that stay as they are', async () => {
    const { id, resource } = await newAccount();
    const own = mysql.createPool({ uri: server.address, flags: ['-FOUND_ROWS'] });
    for (const each of [fence, mysqlFence({ maxJump: 10n })]) {
      for (let time = 0; time < 2; time += 1) {
        await each.raise(own, resource, 7n);
        await each.transaction(own, resource, 7n, (connection) => set(connection, id, 1));
      }
      await expect(each.raise(own, resource, 6n)).rejects.toThrow(stale);
      await expect(each.fenced(own, 7n, resource)).rejects.toThrow(usage);
    }
    await own.end();
  });

  it('S7: newcomers that come at once do not make each other fail', async () => {
    const { id, resource } = await newAccount();
    const first = fence.transaction(pool, resource, 1n, () => Promise.reject(new Error('undone')));
    const others = [2n, 2n, 2n].map((token) =>
      fence.transaction(pool, resource, token, (c) => set(c, id, 2)),
    );
    await expect(first).rejects.toThrow(/undone|refused token 1/);
    await Promise.all(others);
    expect(await get(id)).toBe(2);
  });

  it('resources are fenced one by one, whatever their names', async () => {
    const names = ['a', 'A', 'a ', "o'clock", '\\', '`', '😀', '\u0000', 'é', 'e\u0301', 'x'.repeat(2048)];
    for (const [i, name] of names.entries()) await fence.raise(pool, name, BigInt(i + 1));
    for (const [i, name] of names.entries()) {
      await expect(fence.raise(pool, name, BigInt(i))).rejects.toThrow();
      await fence.raise(pool, name, BigInt(i + 1));
    }
    await expect(fence.raise(pool, 'x'.repeat(2049), 1n)).rejects.toThrow(usage);
  });

  it('bounds how far a bare token may jump, where it is told to', async () => {
    const { resource } = await newAccount();
    const bounded = mysqlFence({ maxJump: 100n });
    const jump = (highest: bigint | undefined) =>
      expect.objectContaining({ code: 'PAWL_TOKEN_JUMP', highest });
    await expect(bounded.raise(pool, resource, 101n)).rejects.toThrow(jump(undefined));
    await bounded.raise(pool, resource, 100n);
    await expect(bounded.raise(pool, resource, 201n)).rejects.toThrow(jump(100n));
    await bounded.raise(pool, resource, 200n);
    await expect(bounded.raise(pool, resource, 199n)).rejects.toThrow(stale);
  });

  it('its table is made by transaction, and never inside the user’s own transaction', async () => {
    const own = mysqlFence({ table: 'other_fence' });
    const { id, resource } = await newAccount();
    await onConnection(async (connection) => {
      await connection.query('START TRANSACTION');
      await set(connection, id, 9);
      await expect(own.fenced(connection, 1n, resource)).rejects.toThrow(
        expect.objectContaining({ code: 'PAWL_FENCE_USAGE', message: expect.stringContaining('migrate') }),
      );
    });
    expect(await get(id)).toBe(0);
    await own.transaction(pool, resource, 1n, (connection) => set(connection, id, 1));
    expect(await get(id)).toBe(1);
    await own.raise(pool, resource, 2n);
  });

  it.each(['', 'a b', 'x; DROP TABLE account', 'a'.repeat(64), 5])('refuses %j as its table', (table) => {
    expect(() => mysqlFence({ table: table as string })).toThrow(usage);
  });

  describe('the column fence', () => {
    beforeAll(async () => {
      await pool.query('CREATE TABLE invoice (id INT PRIMARY KEY, paid INT, fence BIGINT NULL)');
      await pool.query('INSERT INTO invoice VALUES (1, 0, NULL)');
    });
    const pay = async (token: bigint, id: number, paid: number) => {
      const column = columnFence(`invoice:${id}`, token);
      const [{ affectedRows }] = await pool.query<ResultSetHeader>(
        `UPDATE invoice SET paid = ?, ${column.set} WHERE id = ? AND ${column.where}`,
        [paid, column.token, id, column.token],
      );
      return column.settle(pool, affectedRows, 'invoice WHERE id = ?', [id]);
    };

    it('S7: lets equal and higher tokens write, and tells a stale token from a row that is not there', async () => {
      expect(await pay(MAX_TOKEN - 1n, 1, 5)).toBe(true);
      expect(await pay(MAX_TOKEN - 1n, 1, 5)).toBe(true);
      await expect(pay(MAX_TOKEN - 2n, 1, 6)).rejects.toThrow(
        expect.objectContaining({ code: 'PAWL_STALE_TOKEN', highest: MAX_TOKEN - 1n, resource: 'invoice:1' }),
      );
      expect(await pay(MAX_TOKEN, 1, 7)).toBe(true);
      expect(await pay(1n, 2, 7)).toBe(false);
      const [rows] = await pool.query<RowDataPacket[]>('SELECT paid FROM invoice WHERE id = 1');
      expect(rows[0]?.paid).toBe(7);
    });
  });

  it('the program of the documentation runs', () => {
    expect(runDocumented('mysql', { MYSQL_URL: server.address }, 'fences')).toBe('[ { balance: 150 } ]\n');
  }, 60_000);

  tellPauses('mysql', () => ({
    address: server.address,
    balance: () => get(0),
    reset: async () => {
      await pool.query('REPLACE INTO account VALUES (0, 100)');
    },
  }));
});

/** InnoDB ends one of several that insert the same row at once, where the first of them rolls back. */
function isDeadlock(error: unknown): boolean {
  return error instanceof Error && 'errno' in error && error.errno === 1213;
}

/** Resolves once somebody waits for a row. */
async function someoneWaits(pool: Pool): Promise<void> {
  for (;;) {
    const sql = "SELECT COUNT(*) AS n FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
    const [rows] = await pool.query<RowDataPacket[]>(sql);
    if (rows[0]?.n > 0) return;
    // The server renews what it answers only if it was not asked for a tenth of a second.
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
}
