import { connect } from '../../src/client/remote/connect.ts';

/** A client that connects to the server `argv[2]` and is closed. */

const pawl = await connect(process.argv[2] ?? '');
await pawl.close();
process.stdout.write('closed');
