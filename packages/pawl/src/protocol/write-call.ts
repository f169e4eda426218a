import type { Call, NamedToken } from './calls.ts';

/** Writes a request as JSON; the inverse of `readCall`. */
export function writeCall(number: number, call: Call): string {
  const { method, traceparent } = call;
  return JSON.stringify({ id: number, method, params: paramsOf(call), traceparent });
}

function paramsOf(call: Call): unknown {
  switch (call.method) {
    case 'acquire':
      return { ...call.id, locks: call.locks, ...call.options };
    case 'release':
      return { ...call.id, grants: writeTokens(call.grants), forget: call.forget };
    case 'cancel':
      return { ...call.id, names: call.names, forget: call.forget };
    case 'transfer':
      return {
        ...call.id,
        grants: writeTokens(call.grants),
        to: call.to,
        owner: call.owner,
        forget: call.forget,
      };
    case 'breakHold':
      return {
        name: call.name,
        token: String(call.token),
        slot: call.slot,
        reason: call.reason,
        by: call.by,
      };
    case 'position':
      return { ...call.id, name: call.name };
    default: {
      const { method: _, traceparent: __, ...params } = call;
      return params;
    }
  }
}

function writeTokens(grants: readonly NamedToken[]): { name: string; token: string }[] {
  return grants.map(({ name, token }) => ({ name, token: String(token) }));
}
