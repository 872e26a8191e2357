-- Makes a node the owner of a stream, under a higher fence.
-- ARGV: id, node, epoch (identifies the claim, so that it may be sent again), fence that the node has seen, numbers to
--   skip because they may have been used (more if the previous owner may have used more), time in ms for which the node must have held its lease before
--   it takes a stream whose owner's has lapsed, unless that is known to be gone,
--   1 to take a stopped stream, too, while it lingers
-- Answer: UNKNOWN, UNLEASED, STOPPED, CHANGED (another fence by now) or OWNED with the record, or OK with the record
--   and the window
local id, node, epoch = ARGV[1], ARGV[2], ARGV[3]
local seen, skip, settle_ms = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local key, now = record_key(id), now_ms()
local status, owner = field(id, 'status'), field(id, 'owner')
if status == '' then return { 'UNKNOWN' } end
local lingers = ARGV[7] == '1' and number(id, 'lingersUntil') > now
if status == 'STOPPED' and not lingers then return answer('STOPPED', id) end

local function granted()
  local result = answer('OK', id)
  result[4] = redis.call('LRANGE', list_key(id), 0, -1)
  return result
end

if owner == node and field(id, 'epoch') == epoch then return granted() end
if number(id, 'fence') ~= seen then return answer('CHANGED', id) end
if not holds_lease(node) then return answer('UNLEASED', id) end
local is_free = owner == '' or owner == node or field(id, 'yielded') == '1'
local is_known = is_free or knows_numbers(id, owner)
if not is_free and (holds_lease(owner) or not (is_known or is_settled(node, settle_ms, now))) then
  return answer('OWNED', id)
end

-- A stopped stream uses no more numbers: its window stays, and `start` skips what its owner or its server may know.
if status ~= 'STOPPED' then
  if not is_known then skip = math.max(skip, UNSEEN) end
  -- Another claim, with all of the above, may be among the writes that a server has lost.
  if field(id, 'server') ~= server_id() then skip = skip + UNSEEN end
  redis.call('HSET', key, 'server', server_id())
  -- Numbers that were reserved and never closed are gaps of the window already.
  local first, media = number(id, 'first'), number(id, 'media')
  if skip > 0 or first + redis.call('LLEN', list_key(id)) ~= media then
    media = media + skip
    redis.call('DEL', list_key(id))
    redis.call('HSET', key, 'first', int(media), 'media', int(media))
    raise_numbers(id, media, number(id, 'discontinuity') + math.ceil(skip / 100))
  end
end
redis.call('HSET', key, 'fence', int(math.max(number(id, 'fence') + 1, now)),
  'epoch', epoch, 'serial', 0, 'yielded', 0, 'since', (lease_of(node)))
set_owner(id, owner, node)
if status == 'STREAMING' then set_status(id, status, 'INTERRUPTED') end
return granted()
