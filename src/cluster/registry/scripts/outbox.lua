-- Brings the outbox of a node up to date, and gives it the outboxes of nodes that are gone.
-- ARGV: node, time in ms for which it must have held its lease before it gets those of nodes that are not known to be gone,
--   number of events that are over, then outbox and id of each, then new events: id, text and so on
-- Answer: id of the server, then outbox of which the node takes care, or its own, number of events and so on
local node, settle_ms, new = ARGV[1], tonumber(ARGV[2]), 4 + 2 * tonumber(ARGV[3])
for i = 4, new - 1, 2 do
  redis.call('HDEL', outbox_key(ARGV[i]), ARGV[i + 1])
end
for i = new, #ARGV, 2 do
  put_event(node, ARGV[i], ARGV[i + 1])
end
local has_lease, settled = holds_lease(node), is_settled(node, settle_ms, now_ms())
local outboxes, kept = redis.call('HGETALL', OUTBOXES), { server_id() }
for i = 1, #outboxes, 2 do
  local outbox, holder = outboxes[i], outboxes[i + 1]
  local count = redis.call('HLEN', outbox_key(outbox))
  if count == 0 then
    redis.call('HDEL', OUTBOXES, outbox)
  else
    local is_free = not holds_lease(holder) and (settled or redis.call('HEXISTS', GONE, holder) == 1)
    -- A node that was cut off gets its own outbox back.
    if has_lease and (is_free or outbox == node) then
      redis.call('HSET', OUTBOXES, outbox, node)
      holder = node
    end
    if holder == node or outbox == node then
      table.insert(kept, outbox)
      table.insert(kept, count)
    end
  end
end
return kept
