-- Ends the lease of a node, so that others adopt its streams at once: by itself, or by another that finds nobody behind
-- its URL.
-- ARGV: node
-- Answer: 1, or 0 without a lease to end
local node = ARGV[1]
local since, server = lease_of(node)
if not since then return 0 end
redis.call('DEL', lease_key(node))
redis.call('ZADD', NODES, int(now_ms()), node)
if server == server_id() then redis.call('HSET', GONE, node, since) end
return 1
