-- Ends the lease of a node, so that others adopt its streams at once: by itself, or by another that finds nobody behind
-- its URL.
-- ARGV: node, end of its lease in ms if a renewal keeps it ('': it ends anyway)
-- Answer: 1, or 0 if a renewal has kept the lease
local node, deadline = ARGV[1], tonumber(ARGV[2])
local since, server = lease_of(node)
if not since then return 1 end
if deadline and deadline ~= tonumber(redis.call('ZSCORE', NODES, node)) then return 0 end
redis.call('DEL', lease_key(node))
redis.call('ZADD', NODES, int(now_ms()), node)
if server == server_id() then redis.call('HSET', GONE, node, since) end
return 1
