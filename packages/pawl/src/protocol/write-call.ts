import type { AskedLock, RequestId } from '../core/commands.ts';
import type { Owner } from '../core/records.ts';
import type { AcquireOptions } from '../node/service.ts';
import type { Call, NamedToken } from './calls.ts';

/** What stands in JSON as it is. */
const PLAIN = /^[\w .:/-]*$/;

/** The owner that was written last, and how: a client is the same one again and again. */
let lastOwner: { readonly owner: Owner; readonly written: string } | undefined;

/** Writes a request as JSON, without what a server takes for granted; the inverse of `readCall`. */
export function writeCall(number: number, call: Call): string {
  const { method, traceparent } = call;
  const trace = traceparent === undefined ? '' : `,"traceparent":${writeText(traceparent)}`;
  return `{"id":${number},"method":"${method}","params":${writeParams(call)}${trace}}`;
}

/** What makes up a client's load is put together by hand, since most of it is the same each time. */
function writeParams(call: Call): string {
  switch (call.method) {
    case 'acquire':
      return `{${writeId(call.id)},"locks":[${call.locks.map(writeLock).join()}],${writeOptions(call.options)}}`;
    case 'release':
      return `{${writeId(call.id)},"grants":[${call.grants.map(writeToken).join()}],"forget":${call.forget}}`;
    case 'transfer':
      return `{${writeId(call.id)},"grants":[${call.grants.map(writeToken).join()}],"forget":${call.forget},"to":{${writeId(call.to)}},"owner":${writeOwner(call.owner)}}`;
    case 'cancel':
      return JSON.stringify({ ...call.id, names: call.names, forget: call.forget });
    case 'breakHold':
      return JSON.stringify({
        name: call.name,
        token: String(call.token),
        slot: call.slot,
        reason: call.reason,
        by: call.by,
      });
    case 'position':
      return JSON.stringify({ ...call.id, name: call.name });
    default: {
      const { method: _, traceparent: __, ...params } = call;
      return JSON.stringify(params);
    }
  }
}

function writeId({ session, request }: RequestId): string {
  return `"session":${writeText(session)},"request":${writeText(request)}`;
}

function writeLock({ name, mode, permits }: AskedLock): string {
  const asked = `{"name":${writeText(name)}`;
  if (permits !== null) return `${asked},"permits":${permits}}`;
  return mode === 'exclusive' ? `${asked}}` : `${asked},"mode":"${mode}"}`;
}

function writeOptions({ wait, owner, lockDelayMs, barging }: AcquireOptions): string {
  const delay = lockDelayMs === 0 ? '' : `,"lockDelayMs":${lockDelayMs}`;
  return `"wait":${wait},"owner":${writeOwner(owner)}${delay}${barging ? ',"barging":true' : ''}`;
}

function writeToken({ name, token }: NamedToken): string {
  return `{"name":${writeText(name)},"token":"${token}"}`;
}

function writeOwner(owner: Owner): string {
  if (lastOwner?.owner !== owner) lastOwner = { owner, written: JSON.stringify(owner) };
  return lastOwner.written;
}

function writeText(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}
