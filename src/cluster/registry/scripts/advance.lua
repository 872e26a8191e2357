-- Takes what the owner has done since its last acknowledged call: closes segments, reserves the next, sets the status.
-- ARGV: id, node, fence, serial (grows with each call of the owner, which repeats what was not acknowledged), status
--   ('': as it is), 1 if another node may claim the stream, first number of the window, lowest unused media and
--   discontinuity sequence number, target durations and renditions ('': as they are), limit of entries, since when the
--   owner's lease had held when it took these numbers ('': unknown), then entries: number, entry and so on, in order
-- Answer: UNKNOWN, BEHIND (Redis has lost a claim), STALE with the record, STOPPED with the record (numbers are
--   taken, and entries while it lingers), or OK with the lowest unused numbers
local id, node, fence, serial = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local status, yielded, first = ARGV[5], ARGV[6], tonumber(ARGV[7])
local media, discontinuity = tonumber(ARGV[8]), tonumber(ARGV[9])
local targets, renditions, max_entries = ARGV[10], ARGV[11], tonumber(ARGV[12])
local since = ARGV[13]
local key, list = record_key(id), list_key(id)
local r = redis.call('HMGET', key, 'status', 'owner', 'fence', 'serial', 'first', 'media', 'discontinuity', 'targets',
  'since')
local old_status = r[1]
if not old_status then return { 'UNKNOWN' } end
if tonumber(r[3]) < fence then return { 'BEHIND' } end
if tonumber(r[3]) > fence or r[2] ~= node then
  -- Viewers of this owner have seen these numbers.
  raise_numbers(id, media, discontinuity)
  return answer('STALE', id)
end
local is_stopped, lingers_until = old_status == 'STOPPED', number(id, 'lingersUntil')
if is_stopped and lingers_until <= now_ms() then
  raise_numbers(id, media, discontinuity)
  return answer('STOPPED', id)
end
if serial <= tonumber(r[4]) then return is_stopped and answer('STOPPED', id) or { 'OK', r[6], r[7] } end

local start = tonumber(r[5])
local count = redis.call('LLEN', list)
for i = 14, #ARGV, 2 do
  local at = tonumber(ARGV[i]) - start
  if at >= 0 and at < count then
    redis.call('LSET', list, at, ARGV[i + 1])
  elseif at >= count then
    if at > count then
      -- The owner was away for longer than the window, or skips numbers.
      redis.call('DEL', list)
      start, count = start + at, 0
    end
    redis.call('RPUSH', list, ARGV[i + 1])
    count = count + 1
  end
end
local out = math.min(math.max(first - start, count - max_entries, 0), count)
if out > 0 then redis.call('LTRIM', list, out, -1) end
start, count = start + out, count - out
if count == 0 then start = math.max(start, first) end
media = math.max(media, tonumber(r[6]), start + count)
discontinuity = math.max(discontinuity, tonumber(r[7]))
redis.call('HSET', key, 'serial', int(serial), 'yielded', yielded,
  'first', int(start), 'media', int(media), 'discontinuity', int(discontinuity))
if since ~= '' and since ~= r[9] and lease_of(node) == since then
  redis.call('HSET', key, 'since', since, 'server', server_id())
end
if targets ~= '' and not r[8] then redis.call('HSET', key, 'targets', targets) end
if renditions ~= '' then redis.call('HSET', key, 'renditions', renditions) end
if is_stopped then
  -- Another node may serve the last segments, which the stop has ended, until the linger is over.
  redis.call('PEXPIREAT', list, int(lingers_until))
  return answer('STOPPED', id)
end
if status ~= '' and status ~= old_status then set_status(id, old_status, status) end
return { 'OK', int(media), int(discontinuity) }
