/*
 * All that happens in Redis happens in these scripts, so each is one atomic step, and time is always Redis' own. Versions stay
 * strings: a number of Lua holds no integer beyond 2^53.
 *
 * KEYS of every script, all with one hash tag:
 *   1 version   the highest version, a counter
 *   2 values    hash: key → version ":" value
 *   3 index     sorted set of all keys with score 0, for ranges in the order of bytes
 *   4 ttls      hash: live session → its TTL in ms
 *   5 expiry    sorted set: live session → when it expires, ms of Redis' clock
 *   6 ended     set: sessions that have ended and were not forgotten
 *   7 format    the number of this layout
 *   8 answers   of one engine: the number of its last commit that wrote anything, " ", its answers as JSON; for a while
 */
export const KEYS = ['version', 'values', 'index', 'ttls', 'expiry', 'ended', 'format'] as const;

/** The format of the layout; a newer Pawl that changes it counts up. */
export const FORMAT = 1;

/** ARGV: 1 the format of this Pawl. Returns the format of what is stored, which is made if nothing is. */
export const PREPARE = `
redis.call('SETNX', KEYS[7], ARGV[1])
return redis.call('GET', KEYS[7])
`;

const PRELUDE = `
local VERSION, VALUES, INDEX, TTLS, EXPIRY, ENDED = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function finish(id)
  if redis.call('HDEL', TTLS, id) == 1 then
    redis.call('ZREM', EXPIRY, id)
    redis.call('SADD', ENDED, id)
  end
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', now)) do finish(id) end
local function version_of(key)
  local entry = redis.call('HGET', VALUES, key)
  return entry and string.match(entry, '^%d+') or ''
end
`;

/** So long Redis remembers what an engine's last commit was answered, in ms: longer than the engine waits for it. */
export const REMEMBER_MS = 60_000;

/**
 * A driver that lost its connection may send a commit once more that was done, and "conflict" would then be a lie: so a commit has a
 * number, and is answered as it was before.
 *
 * ARGV: 1 prefix of the inboxes' channels; 2 JSON: a list of writes { g: guards [key, version or ""], a: sessions, p: puts
 * [key, value], d: deletes, w: wakes [inbox, message] }; 3 the number of the commit, higher than those before it of its engine.
 * Returns a list: { "committed", version }, { "conflict", key… } or { "ended", session… } for each write.
 */
export const COMMIT = `${PRELUDE}
local last, answered = string.match(redis.call('GET', KEYS[8]) or '', '^(%d+) (.*)$')
if last == ARGV[3] then return cjson.decode(answered) end
if last and tonumber(last) > tonumber(ARGV[3]) then return redis.error_reply('REPEATED a commit before the last one') end
local answers, wrote = {}, false
for i, write in ipairs(cjson.decode(ARGV[2])) do
  local ended, differing = { 'ended' }, { 'conflict' }
  for _, id in ipairs(write.a) do
    if redis.call('HEXISTS', TTLS, id) == 0 then ended[#ended + 1] = id end
  end
  for _, guard in ipairs(write.g) do
    if version_of(guard[1]) ~= guard[2] then differing[#differing + 1] = guard[1] end
  end
  if #ended > 1 then answers[i] = ended
  elseif #differing > 1 then answers[i] = differing
  else
    if #write.p > 0 then redis.call('INCR', VERSION) end
    local version = redis.call('GET', VERSION) or '0'
    for _, put in ipairs(write.p) do
      redis.call('HSET', VALUES, put[1], version .. ':' .. put[2])
      redis.call('ZADD', INDEX, 0, put[1])
    end
    for _, key in ipairs(write.d) do
      redis.call('HDEL', VALUES, key)
      redis.call('ZREM', INDEX, key)
    end
    for _, wake in ipairs(write.w) do
      redis.call('PUBLISH', ARGV[1] .. wake[1], version .. ' ' .. wake[2])
    end
    answers[i] = { 'committed', version }
    wrote = true
  end
end
if wrote then redis.call('SET', KEYS[8], ARGV[3] .. ' ' .. cjson.encode(answers), 'PX', ${REMEMBER_MS}) end
return answers
`;

/**
 * ARGV: 1 JSON { k: keys, r: ranges [lower bound, upper bound, limit] }, bounds as ZRANGEBYLEX takes them.
 * Returns { entries of the keys or false…, then for each range a flat list key, entry, key, entry… }; an entry is version ":" value.
 */
export const READ = `${PRELUDE}
local query = cjson.decode(ARGV[1])
local values = {}
for i, key in ipairs(query.k) do values[i] = redis.call('HGET', VALUES, key) end
local answer = { values }
for _, range in ipairs(query.r) do
  local list = {}
  for _, key in ipairs(redis.call('ZRANGEBYLEX', INDEX, range[1], range[2], 'LIMIT', 0, range[3])) do
    list[#list + 1] = key
    list[#list + 1] = redis.call('HGET', VALUES, key)
  end
  answer[#answer + 1] = list
end
return answer
`;

/** ARGV: 1 session; 2 TTL in ms. Returns 1, or 0 where a session of that id has ended. */
export const OPEN = `${PRELUDE}
if redis.call('SISMEMBER', ENDED, ARGV[1]) == 1 then return 0 end
redis.call('HSET', TTLS, ARGV[1], ARGV[2])
redis.call('ZADD', EXPIRY, now + ARGV[2], ARGV[1])
return 1
`;

/** ARGV: sessions. Returns those that were alive. */
export const KEEP_ALIVE = `${PRELUDE}
local alive = {}
for _, id in ipairs(ARGV) do
  local ttl = redis.call('HGET', TTLS, id)
  if ttl then
    redis.call('ZADD', EXPIRY, now + ttl, id)
    alive[#alive + 1] = id
  end
end
return alive
`;

/** ARGV: 1 session. */
export const END = `${PRELUDE}
finish(ARGV[1])
return 1
`;

/** ARGV: sessions. */
export const FORGET = `${PRELUDE}
for _, id in ipairs(ARGV) do redis.call('SREM', ENDED, id) end
return 1
`;

/** Returns all sessions that have ended and were not forgotten. */
export const SWEEP = `${PRELUDE}
return redis.call('SMEMBERS', ENDED)
`;

/** ARGV: 1 the least version to be current from now on. Returns the version that was current before. */
export const RAISE = `${PRELUDE}
local before = redis.call('GET', VERSION) or '0'
local least = ARGV[1]
if #least > #before or (#least == #before and least > before) then redis.call('SET', VERSION, least) end
return before
`;
