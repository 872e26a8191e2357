-- Gives back what Redis has lost: the owner of a fence that Redis does not know writes the whole stream.
-- ARGV: id, node, fence, serial, status, first number of the window, lowest unused media and discontinuity sequence
--   number, target durations, renditions, epoch, run, start and expiry of the stream key in ms, time in ms since Redis
--   was last known to have the stream, time in ms for which records of stopped streams are kept, number of entries,
--   entries, number of stream keys, then these: id, time of the latest use in ms and so on, then options: name, value and so on
-- Answer: UNKNOWN (it may have been stopped so long ago that no record is left), STALE or STOPPED with the record, or OK
--   with the lowest unused numbers
local id, node, fence, serial = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local status, first = ARGV[5], tonumber(ARGV[6])
local media, discontinuity = tonumber(ARGV[7]), tonumber(ARGV[8])
local epoch, run, entries = ARGV[11], tonumber(ARGV[12]), tonumber(ARGV[17])
local away_ms, retain_ms = tonumber(ARGV[15]), tonumber(ARGV[16])
local key, old_status, owner = record_key(id), field(id, 'status'), field(id, 'owner')
if old_status ~= '' then
  local old_fence, old_run = number(id, 'fence'), number(id, 'run')
  local is_stale = old_fence > fence or (old_fence == fence and owner ~= node) or old_run > run
  local is_stopped = old_status == 'STOPPED' and old_run == run
  if is_stale or is_stopped then
    raise_numbers(id, media, discontinuity)
    return answer(is_stopped and 'STOPPED' or 'STALE', id)
  end
elseif away_ms > retain_ms - CLOCKS_MS and away_ms < now_ms() - tonumber(redis.call('GET', BORN) or 0) then
  return { 'UNKNOWN' }
end
media = math.max(media, number(id, 'media'), first + entries)
discontinuity = math.max(discontinuity, number(id, 'discontinuity'))
local key_issued_at, known = number(id, 'keyIssuedAt'), redis.call('HGETALL', key)
local keys = tonumber(ARGV[18 + entries])
unlist(id)
redis.call('DEL', key, list_key(id))
for i = 1, #known, 2 do
  if string.match(known[i], '^k%.') then redis.call('HSET', key, known[i], known[i + 1]) end
end
redis.call('HSET', key,
  'run', int(run), 'fence', int(fence), 'epoch', epoch, 'serial', int(serial), 'yielded', 0, 'since', '', 'server', server_id(),
  'first', int(first), 'media', int(media), 'discontinuity', int(discontinuity),
  'startedAt', ARGV[13], 'keyExpiresAt', ARGV[14], 'keyIssuedAt', int(key_issued_at))
if ARGV[9] ~= '' then redis.call('HSET', key, 'targets', ARGV[9]) end
if ARGV[10] ~= '' then redis.call('HSET', key, 'renditions', ARGV[10]) end
for i = 18, 17 + entries do
  redis.call('RPUSH', list_key(id), ARGV[i])
end
local options = 19 + entries + 2 * keys
for i = 19 + entries, #ARGV, 2 do
  -- Of a key that the record has, it knows the latest use.
  if i < options then redis.call('HSETNX', key, 'k.' .. ARGV[i], ARGV[i + 1])
  else redis.call('HSET', key, 's.' .. ARGV[i], ARGV[i + 1]) end
end
redis.call('ZADD', STREAMS, 0, id)
set_status(id, '', status)
set_owner(id, owner, node)
local port = field(id, 's.publishPort')
if port ~= '' then
  -- Another stream may have been given it meanwhile.
  local is_free = (stream_at(port) or id) == id
  if is_free then redis.call('HSET', PORTS, port, id) else redis.call('HDEL', key, 's.publishPort') end
end
return { 'OK', int(media), int(discontinuity) }
