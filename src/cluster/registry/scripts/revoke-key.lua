-- Revokes one stream key, also of a stream that nobody has started.
-- ARGV: id, key id, limit of keys that are revoked alone, which is that of streams with revoked keys as well
-- Answer: UNKNOWN, or OK and the record
local id, key_id, max, now = ARGV[1], ARGV[2], tonumber(ARGV[3]), now_ms()
redis.call('ZADD', REVOKED, 0, id .. ' ' .. key_id)
redis.call('HDEL', record_key(id), 'k.' .. key_id)
for _, revoked in ipairs(revoked_keys(id)) do
  local _, expires = times_of(revoked)
  if expires * 1000 <= now then redis.call('ZREM', REVOKED, id .. ' ' .. revoked) end
end
local own, excess = revoked_keys(id), nil
if #own > MAX_KEYS then
  excess = id .. ' ' .. own[1]
elseif redis.call('ZCARD', REVOKED) > max then
  excess = redis.call('ZRANGE', REVOKED, 0, 0)[1]
end
if excess then
  -- Older keys of its stream are refused with it, but no revoked one is accepted.
  local other, other_key = string.match(excess, '^(%S+) (%S+)$')
  local issued = times_of(other_key)
  raise_floor(other, math.min(issued, math.floor(now / 1000)) + 1, max)
  redis.call('ZREM', REVOKED, excess)
end
if field(id, 'status') == '' then return { 'UNKNOWN' } end
return answer('OK', id)
