-- Starts a stream, or changes the options of a running one.
-- ARGV: id, expiry of its stream key in ms, limit of running streams for each node, as many more of which may be stopped
--   and listed, clock of sequence numbers (origin in ms, media per second,
--   discontinuities per second), time of issue of the key in ms, number of options that keep the value that they were given first, until the stream
--   stops, then these options and the others: name, value and so on
-- Answer: FULL, or OK and the record
local id, key_expires_at, max_streams = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local key, now = record_key(id), now_ms()
-- The key is issued at the floor below which keys are revoked, if that is later.
key_expires_at = key_expires_at + math.max(0, key_floor(id) * 1000 - now)
local key_issued_at = math.max(tonumber(ARGV[7]), key_floor(id) * 1000, number(id, 'keyIssuedAt'))
sweep(now)
local status = field(id, 'status')
if status == '' or status == 'STOPPED' then
  max_streams = max_streams * math.max(1, redis.call('ZCOUNT', NODES, '(' .. int(now), '+inf'))
  local stopped = redis.call('ZCARD', STOPPED)
  if redis.call('ZCARD', STREAMS) - stopped >= max_streams then return { 'FULL' } end
  if stopped > max_streams then
    local excess = math.min(stopped - max_streams, 10)
    for _, first in ipairs(redis.call('ZRANGE', STOPPED, 0, excess - 1)) do
      forget(first)
    end
  end
  -- Under one URL numbers never go back (RFC 8216bis 6.2.1), not even when the record of the last run has expired.
  -- The owner of the last run may go on until it learns of the stop, and a run may be among lost writes.
  local unseen = 0
  if field(id, 'owner') ~= '' then unseen = unseen + 1 end
  if status ~= '' and field(id, 'server') ~= server_id() then unseen = unseen + 1 end
  local used = number(id, 'media') + unseen * UNSEEN
  local used_discontinuities = number(id, 'discontinuity') + unseen * UNSEEN_DISCONTINUITIES
  local elapsed_sec = (now - tonumber(ARGV[4])) / 1000
  local media = math.max(used, math.ceil(elapsed_sec * tonumber(ARGV[5])))
  local discontinuity = math.max(used_discontinuities, math.ceil(elapsed_sec * tonumber(ARGV[6])))
  local run, fence = math.max(number(id, 'run') + 1, now), number(id, 'fence')
  unlist(id)
  redis.call('DEL', key, list_key(id))
  redis.call('HSET', key,
    'run', int(run), 'status', 'READY', 'owner', '', 'fence', int(fence), 'epoch', '', 'serial', 0, 'yielded', 0, 'since', '', 'server', server_id(),
    'first', int(media), 'media', int(media), 'discontinuity', int(discontinuity),
    'startedAt', int(now), 'keyExpiresAt', int(key_expires_at))
  redis.call('ZADD', STREAMS, 0, id)
  set_status(id, '', 'READY')
  redis.call('ZADD', UNCLAIMED, int(key_expires_at), id)
elseif key_expires_at > number(id, 'keyExpiresAt') then
  redis.call('HSET', key, 'keyExpiresAt', int(key_expires_at))
  if field(id, 'owner') == '' then redis.call('ZADD', UNCLAIMED, int(key_expires_at), id) end
end
redis.call('HSET', key, 'keyIssuedAt', int(key_issued_at))
local others = 9 + 2 * tonumber(ARGV[8])
for i = 9, #ARGV, 2 do
  redis.call(i < others and 'HSETNX' or 'HSET', key, 's.' .. ARGV[i], ARGV[i + 1])
end
return answer('OK', id)
