-- Revokes one stream key, also of a stream that nobody has started.
-- ARGV: id, key id, limit of keys that are revoked alone, which is that of streams with revoked keys as well
-- Answer: UNKNOWN, or OK and the record
local id, key_id, max, now = ARGV[1], ARGV[2], tonumber(ARGV[3]), now_ms()
local now_sec = math.floor(now / 1000)

local function forget_key(member)
  redis.call('ZREM', REVOKED, member)
  redis.call('ZREM', REVOKED_UNTIL, member)
end

local _, revoked_until = times_of(key_id)
redis.call('ZADD', REVOKED, 0, id .. ' ' .. key_id)
redis.call('ZADD', REVOKED_UNTIL, int(revoked_until), id .. ' ' .. key_id)
redis.call('HDEL', record_key(id), 'k.' .. key_id)
for _, revoked in ipairs(revoked_keys(id)) do
  local _, expires = times_of(revoked)
  if expires <= now_sec then forget_key(id .. ' ' .. revoked) end
end
-- More of them leave than are added: a full set has none that has expired.
for _, expired in ipairs(redis.call('ZRANGEBYSCORE', REVOKED_UNTIL, '-inf', now_sec, 'LIMIT', 0, 10)) do
  forget_key(expired)
end
local own, excess = revoked_keys(id), nil
if #own > MAX_KEYS then
  excess = id .. ' ' .. own[1]
elseif redis.call('ZCARD', REVOKED) > max then
  excess = redis.call('ZRANGE', REVOKED_UNTIL, 0, 0)[1]
end
if excess then
  local other, other_key = string.match(excess, '^(%S+) (%S+)$')
  local issued = times_of(other_key)
  -- Older keys of its stream are refused with it, but no revoked one is accepted, nor one that was issued ahead of this
  -- clock; an id that is no key's raises the floor no further.
  raise_floor(other, math.min(issued, now_sec + CLOCKS_MS / 1000) + 1, max)
  forget_key(excess)
end
if field(id, 'status') == '' then return { 'UNKNOWN' } end
return answer('OK', id)
