-- Streams whose owner's lease has lapsed, for a node that may adopt them: running ones in the order of their ids for each
-- owner, then stopped ones that linger.
-- ARGV: node, time in ms for which it must have held its lease unless the owner is known to be gone, limit for each owner, id before the first one
-- Answer: id, fence, owner, record of the owner, 1 or 0 (all its numbers are known) and so on
local node, settle_ms, limit, after = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local now = now_ms()
local streams = {}
sweep(now)
if not holds_lease(node) then return streams end
local settled = is_settled(node, settle_ms, now)
for _, owner in ipairs(redis.call('ZRANGEBYSCORE', NODES, '-inf', now, 'LIMIT', 0, 16)) do
  local record = redis.call('HGET', NODE_RECORDS, owner) or ''
  local ids = holds_lease(owner) and {} or page(owned_key(owner), after, limit)
  for _, id in ipairs(holds_lease(owner) and {} or page(lingering_key(owner), after, limit)) do
    if number(id, 'lingersUntil') > now then
      table.insert(ids, id)
    else
      redis.call('ZREM', lingering_key(owner), id)
    end
  end
  for _, id in ipairs(ids) do
    local known = knows_numbers(id, owner)
    if known or settled then
      table.insert(streams, id)
      table.insert(streams, field(id, 'fence'))
      table.insert(streams, owner)
      table.insert(streams, record)
      table.insert(streams, known and 1 or 0)
    end
  end
  if #ids == 0 and after == '' and not holds_lease(owner) then
    forget_node(owner)
  end
end
return streams
