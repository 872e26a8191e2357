-- Runs whose end a node may announce, oldest first: after a failover its own at once, those of others once it has settled,
-- since an owner may have announced what this server does not know.
-- ARGV: node, time in ms for which it must have held its lease before it announces those of others, limit
-- Answer: id and run, reason and webhook URLs and so on
local node, limit, now = ARGV[1], tonumber(ARGV[3]), now_ms()
local settled, ends = is_settled(node, tonumber(ARGV[2]), now), {}
local due = redis.call('ZRANGEBYSCORE', UNANNOUNCED, '-inf', now, 'LIMIT', 0, settled and limit or -1)
for _, run in ipairs(due) do
  if #ends == 2 * limit then break end
  local ended = redis.call('HGET', ENDS, run)
  if settled or string.match(ended, '^%S*') == node then
    table.insert(ends, run)
    table.insert(ends, ended)
  end
end
return ends
