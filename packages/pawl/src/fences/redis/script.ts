import { Script } from './client.ts';

/*
 * Tokens stay decimal strings: a number of Lua holds no integer beyond 2^53. Without leading zeros the longer is the higher, and
 * of two with the same length the one that comes later in the order of bytes.
 *
 * KEYS: 1 the key that keeps the highest token of the resource.
 * ARGV: 1 token; 2 floor: what the highest must be at least (0: nothing); then for each command the number of its parts, and they.
 * Returns { "done", answer… }, { "stale", highest }, { "jump", highest or "0" }, or { "failed", index from 0, what Redis said }.
 */
export const FENCED = new Script(`
local function lower(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local token, floor = ARGV[1], ARGV[2]
local highest = redis.call('GET', KEYS[1])
if highest and lower(token, highest) then return { 'stale', highest } end
if lower(highest or '0', floor) then return { 'jump', highest or '0' } end
if highest ~= token then redis.call('SET', KEYS[1], token) end
local answers = { 'done' }
local at = 3
while ARGV[at] do
  local parts = tonumber(ARGV[at])
  local answer = redis.pcall(unpack(ARGV, at + 1, at + parts))
  if type(answer) == 'table' and answer.err then
    return { 'failed', tostring(#answers - 1), answer.err }
  end
  answers[#answers + 1] = answer
  at = at + 1 + parts
end
return answers
`);

/** How many parts a command may have: what Lua puts on its stack at once. */
export const MOST_PARTS = 7000;
