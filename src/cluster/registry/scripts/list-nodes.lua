-- Nodes whose lease holds, and those that have streams to be adopted. Forgets the others.
-- ARGV: limit, lease in ms
-- Answer: node, record, 1 or 0 (lease holds), number of running streams that it owns, end of its lease, time since its last
--   renewal in ms and so on
local nodes, now = {}, now_ms()
for _, node in ipairs(redis.call('ZREVRANGE', NODES, 0, tonumber(ARGV[1]) - 1)) do
  local is_live = holds_lease(node)
  if is_live or redis.call('EXISTS', owned_key(node), lingering_key(node)) > 0 then
    table.insert(nodes, node)
    table.insert(nodes, redis.call('HGET', NODE_RECORDS, node) or '')
    table.insert(nodes, is_live and 1 or 0)
    table.insert(nodes, redis.call('ZCARD', owned_key(node)))
    local deadline = redis.call('ZSCORE', NODES, node)
    table.insert(nodes, deadline)
    table.insert(nodes, int(math.max(0, now - (deadline - tonumber(ARGV[2])))))
  else
    forget_node(node)
  end
end
return nodes
