-- Stands before every script: names of keys, time, and the indexes that a stream is in.
--
-- Redis TIME is the only clock of the protocol, so clocks of nodes may differ. Scripts name keys of several hash slots
-- (a stream, the lease of its owner, the indexes): who may claim a stream and where it is listed change as one, and one
-- server holds more streams than a cluster of nodes serves. Redis Cluster would need the lease as an argument.

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Lua writes 1.7e12 as 1.7e+12.
local function int(number)
  return string.format('%.0f', number)
end

local function record_key(id)
  return 'mr:{' .. id .. '}'
end

-- Entries of the window, oldest first; the first has the number `first` of the record.
local function list_key(id)
  return 'mr:{' .. id .. '}:list'
end

-- Exists as long as the node's lease holds; its value is the time since when it has held without a lapse, and the server
-- that has granted it.
local function lease_key(node)
  return 'mr:node:' .. node
end

-- Ids of the running streams that the node owns, all with score 0.
local function owned_key(node)
  return 'mr:node:' .. node .. ':streams'
end

-- Ids of the stopped streams that the node serves until their linger is over, all with score 0.
local function lingering_key(node)
  return 'mr:node:' .. node .. ':lingering'
end

-- All nodes by the end of their leases, and how others reach them.
local NODES, NODE_RECORDS = 'mr:nodes', 'mr:nodes:records'
-- Nodes that were known to be gone when their leases still held, and since when these had held.
local GONE = 'mr:nodes:gone'
-- Ids of all listed streams, all with score 0; the same by status in 'mr:streams:READY' and so on.
local STREAMS = 'mr:streams'
-- READY streams that nobody has claimed, by the expiry of their last key.
local UNCLAIMED = 'mr:unclaimed'
-- Time of issue in seconds below which stream keys are revoked, by stream, and that of all streams without their own.
-- Both outlast runs, and are there for streams that nobody has started.
local FLOORS, FLOOR_OF_ALL = 'mr:floors', 'mr:floors:all'
-- Stream id and key id of the stream keys that are revoked alone, all with score 0; the same by expiry in seconds.
local REVOKED, REVOKED_UNTIL = 'mr:revoked', 'mr:revoked:until'
-- Stream keys that a stream has in its record, and revoked ones beside it.
local MAX_KEYS = 50
-- Since when the database has been in use, in ms.
local BORN = 'mr:born'
-- Streams by the port that they have to themselves: see stream_at.
local PORTS = 'mr:ports'
-- STOPPED streams by the end of their linger.
local STOPPED = 'mr:stopped'

-- Maximum difference between the clocks of two nodes, in ms.
local CLOCKS_MS = 60000

-- Runs that have stopped and whose `stream.stopped` is in no outbox yet, by the time from which any node may put it into
-- its own, and of each: owner, reason and webhook URLs.
local UNANNOUNCED, ENDS = 'mr:unannounced', 'mr:unannounced:ends'
-- Time for which the end of a run is left to its owner.
local ANNOUNCE_MS = 5000

-- Undelivered events of webhooks by their ids.
local function outbox_key(outbox)
  return 'mr:node:' .. outbox .. ':outbox'
end

-- Outboxes that have events, and the node that delivers them: another one once the node of that name is gone.
local OUTBOXES = 'mr:outboxes'
-- Twice the time for which webhooks are retried.
local OUTBOX_MS = 20 * 60 * 1000

-- Numbers that an owner may use without Redis until nobody reads from it any more, and discontinuities among them.
local UNSEEN, UNSEEN_DISCONTINUITIES = 1000, 10

local function field(id, name)
  return redis.call('HGET', record_key(id), name) or ''
end

local function number(id, name)
  return tonumber(field(id, name)) or 0
end

-- Stream that has a port to itself; nil without one. It has the port as long as it runs and its record says so: an entry
-- that it leaves behind is none.
local function stream_at(port)
  local id = redis.call('HGET', PORTS, port)
  if not id or field(id, 's.publishPort') ~= port then return nil end
  local status = field(id, 'status')
  return status ~= '' and status ~= 'STOPPED' and id or nil
end

-- Another one after a failover or a restart, which may have lost the last writes.
local function server_id()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
end

local function holds_lease(node)
  return redis.call('EXISTS', lease_key(node)) == 1
end

-- Time as text since when the lease has held, and the server that has granted it; nil without a lease.
local function lease_of(node)
  local since, server = string.match(redis.call('GET', lease_key(node)) or '', '^(%d+) (%w+)$')
  return since, server
end

-- Whether the node has held its lease for so long that nodes which Redis, or the way to it, has kept from renewing
-- theirs have done so by now.
local function is_settled(node, settle_ms, now)
  local since = lease_of(node)
  return since ~= nil and now - tonumber(since) >= settle_ms
end

-- Whether the record has all numbers that the owner has used: an owner uses others only after its lease has lapsed.
local function knows_numbers(id, owner)
  local since = redis.call('HGET', GONE, owner)
  return since and since == field(id, 'since')
end

local function set_status(id, old, new)
  redis.call('HSET', record_key(id), 'status', new)
  if old == new then return end
  if old ~= '' then redis.call('ZREM', STREAMS .. ':' .. old, id) end
  redis.call('ZADD', STREAMS .. ':' .. new, 0, id)
end

local function set_owner(id, old, new)
  local key_of = field(id, 'status') == 'STOPPED' and lingering_key or owned_key
  redis.call('HSET', record_key(id), 'owner', new)
  redis.call('ZREM', UNCLAIMED, id)
  if old ~= '' and old ~= new then redis.call('ZREM', key_of(old), id) end
  if new ~= '' then redis.call('ZADD', key_of(new), 0, id) end
end

local function forget_node(node)
  redis.call('ZREM', NODES, node)
  redis.call('HDEL', NODE_RECORDS, node)
  redis.call('HDEL', GONE, node)
end

local function unlist(id)
  redis.call('ZREM', lingering_key(field(id, 'owner')), id)
  redis.call('ZREM', STREAMS, id)
  redis.call('ZREM', STOPPED, id)
  for _, status in ipairs({ 'READY', 'STREAMING', 'INTERRUPTED', 'STOPPED' }) do
    redis.call('ZREM', STREAMS .. ':' .. status, id)
  end
end

-- Unlists a stopped stream. Until it expires, its record tells an owner that was away of the stop, and a later run of the
-- numbers that were used; nothing else is kept of it.
local function forget(id)
  unlist(id)
  for _, name in ipairs(redis.call('HKEYS', record_key(id))) do
    if string.match(name, '^[sk]%.') or name == 'targets' or name == 'renditions' then
      redis.call('HDEL', record_key(id), name)
    end
  end
end

-- Forgets some streams whose linger is over.
local function sweep(now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', STOPPED, '-inf', now, 'LIMIT', 0, 10)) do
    forget(id)
  end
end

-- Numbers that the owner of a fence has used never become free again.
local function raise_numbers(id, media, discontinuity)
  if media > number(id, 'media') then
    redis.call('HSET', record_key(id), 'media', int(media))
  end
  if discontinuity > number(id, 'discontinuity') then
    redis.call('HSET', record_key(id), 'discontinuity', int(discontinuity))
  end
end

-- 0: no key of the stream is revoked.
local function key_floor(id)
  local own, of_all = redis.call('ZSCORE', FLOORS, id), redis.call('GET', FLOOR_OF_ALL)
  return math.max(tonumber(own or 0), tonumber(of_all or 0))
end

local function raise_floor(id, floor, max_floors)
  if floor <= key_floor(id) then return end
  redis.call('ZADD', FLOORS, int(floor), id)
  if redis.call('ZCARD', FLOORS) > max_floors then
    -- Valid keys of other streams may be refused then, but no revoked one is accepted.
    redis.call('SET', FLOOR_OF_ALL, redis.call('ZPOPMIN', FLOORS)[2])
  end
end

-- Ids of the keys of a stream that are revoked alone, in order.
local function revoked_keys(id)
  local keys = {}
  for _, member in ipairs(redis.call('ZRANGEBYLEX', REVOKED, '[' .. id .. ' ', '(' .. id .. '!')) do
    table.insert(keys, string.sub(member, #id + 2))
  end
  return keys
end

local function is_revoked(id, key_id)
  return redis.call('ZSCORE', REVOKED, id .. ' ' .. key_id)
end

-- Times of issue and expiry of a key in seconds, which its id has.
local function times_of(key_id)
  local issued, lifetime = string.match(key_id, '^(%d+)-(%d+)-')
  return tonumber(issued), issued + lifetime
end

-- Has the record list a key, with the time of its latest use in ms (0: none so far). Of too many, the one that was issued
-- or used first leaves.
local function put_key(id, key_id, used, now)
  redis.call('HSET', record_key(id), 'k.' .. key_id, int(math.max(used, number(id, 'k.' .. key_id))))
  local count, first, first_ms = 0, nil, nil
  local fields = redis.call('HGETALL', record_key(id))
  for i = 1, #fields, 2 do
    local listed = string.match(fields[i], '^k%.(.*)')
    if listed then
      local issued, expires = times_of(listed)
      local touched = math.max(issued * 1000, tonumber(fields[i + 1]))
      if expires * 1000 <= now then
        redis.call('HDEL', record_key(id), fields[i])
      else
        count = count + 1
        if not first or touched < first_ms or (touched == first_ms and fields[i] < first) then
          first, first_ms = fields[i], touched
        end
      end
    end
  end
  if count > MAX_KEYS then redis.call('HDEL', record_key(id), first) end
end

local function insert(record, name, value)
  table.insert(record, name)
  table.insert(record, value)
end

-- Answer: a word, the record, and how to reach its owner ('' if unknown).
local function answer(word, id)
  local record, floor, revoked = redis.call('HGETALL', record_key(id)), key_floor(id), revoked_keys(id)
  if floor > 0 then insert(record, 'keyFloor', int(floor)) end
  if #revoked > 0 then insert(record, 'revokedKeys', table.concat(revoked, ' ')) end
  local owner = field(id, 'owner')
  local node = owner ~= '' and redis.call('HGET', NODE_RECORDS, owner) or ''
  return { word, record, node or '' }
end

local function run_of(id, run)
  return id .. ' ' .. run
end

local function put_event(node, event, text)
  redis.call('HSET', outbox_key(node), event, text)
  redis.call('PEXPIRE', outbox_key(node), OUTBOX_MS)
  redis.call('HSETNX', OUTBOXES, node, node)
end

-- Members of a set with score 0 behind `after`, in order.
local function page(key, after, limit)
  local from = after == '' and '-' or '(' .. after
  return redis.call('ZRANGEBYLEX', key, from, '+', 'LIMIT', 0, limit)
end
