/*
 * What each Redis does, one atomic step a script. Tokens stay strings: a number of Lua holds no integer beyond 2^53.
 *
 * KEYS of every script, both with one hash tag:
 *   1 lock    the value of the attempt that has this instance, with the lock's TTL
 *   2 token   the highest token confirmed here; never expires
 */

/** The keys of a lock. @param encodedName has no braces, so it is the hash tag. */
export function redlockKeys(prefix: string, encodedName: string): readonly [lock: string, token: string] {
  return [`${prefix}:{${encodedName}}:lock`, `${prefix}:{${encodedName}}:token`];
}

/**
 * Takes the instance. ARGV: 1 value; 2 TTL in ms. Returns its highest token, or nil where another has it. A driver may repeat
 * it after a lost connection, so the own value counts as taken.
 */
export const TAKE = `
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return false
end
return redis.call('GET', KEYS[2]) or '0'
`;

/**
 * Writes the token down. ARGV: 1 value; 2 token. Returns 1, or 0 where the value is gone or the token is not above all before it:
 * that cannot be where the token was made from this instance's answer, but may be where that answer came too late to count.
 */
export const CONFIRM = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local token, highest = ARGV[2], redis.call('GET', KEYS[2]) or '0'
if #token < #highest or (#token == #highest and token <= highest) then return 0 end
redis.call('SET', KEYS[2], token)
return 1
`;

/** Begins the TTL anew. ARGV: 1 value; 2 TTL in ms. Returns 1, or 0 where the value is gone. */
export const EXTEND = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

/** Gives the instance back. ARGV: 1 value. Returns 1, or 0 where the value is gone. */
export const RELEASE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`;
