import { connect } from '../../src/client/remote/connect.ts';

/** A client that takes a lock of the server `argv[2]` and has nothing else to do. */

const pawl = await connect(process.argv[2] ?? '');
const lease = await pawl.acquire('x');
process.stdout.write(String(lease.token));
