-- Starts a stream, or changes the options of a running one.
-- ARGV: id, expiry of its stream key in ms, limit of running streams for each node, as many more of which may be stopped
--   and listed, clock of sequence numbers (origin in ms, media per second, discontinuities per second), time of issue of the
--   key in ms ('': now), 1 to issue a key for the backup encoder as well, port that the stream is to have to itself ('':
--   none), 1 if the request or the settings protect it, number of options that keep the value that they were given first,
--   until the stream stops, then these options and the others: name, value and so on
-- Answer: FULL, OTHER and the port that the stream has, TAKEN or OPEN (nothing protects the port), or OK and the record
--   with the time of issue of the keys in seconds
local id, key_expires_at, max_streams = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local key, now = record_key(id), now_ms()
local issued_at = tonumber(ARGV[7]) or now
local port, is_protected = ARGV[9], ARGV[10] == '1'
local lifetime_sec = math.max(0, math.floor((key_expires_at - issued_at) / 1000))
-- The key is issued at the floor below which keys are revoked, if that is later, and later still if it has the id of a
-- revoked one.
local issued_sec = math.floor(math.max(issued_at, key_floor(id) * 1000) / 1000)
local function key_id(source)
  return int(issued_sec) .. '-' .. int(lifetime_sec) .. '-' .. source
end
local first_sec = issued_sec
while is_revoked(id, key_id('main')) or is_revoked(id, key_id('backup')) do
  issued_sec = issued_sec + 1
end
key_expires_at = key_expires_at + math.max(0, key_floor(id) * 1000 - now) + (issued_sec - first_sec) * 1000
local key_issued_at = math.max(issued_at, issued_sec * 1000, number(id, 'keyIssuedAt'))
sweep(now)
local status = field(id, 'status')
local runs = status ~= '' and status ~= 'STOPPED'
if port ~= '' then
  local known = runs and field(id, 's.publishPort') or ''
  -- Another stream may have been given the port that the record still has.
  if known ~= '' and known ~= port and (stream_at(known) or id) == id then return { 'OTHER', known } end
  if (stream_at(port) or id) ~= id then return { 'TAKEN' } end
  if runs and field(id, 's.encryption') .. field(id, 's.allowFrom') ~= '' then is_protected = true end
  if not is_protected then return { 'OPEN' } end
end
if not runs then
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
put_key(id, key_id('main'), 0, now)
if ARGV[8] == '1' then put_key(id, key_id('backup'), 0, now) end
if port ~= '' then
  redis.call('HSET', key, 's.publishPort', port)
  redis.call('HSET', PORTS, port, id)
end
local others = 12 + 2 * tonumber(ARGV[11])
for i = 12, #ARGV, 2 do
  redis.call(i < others and 'HSETNX' or 'HSET', key, 's.' .. ARGV[i], ARGV[i + 1])
end
local started = answer('OK', id)
insert(started[2], 'issuedAtSec', int(issued_sec))
return started
