-- Renews the lease of a node.
-- ARGV: node, record (how others reach it), lease in ms
-- Answer: time since when this server has seen the lease hold without a lapse, in ms
local node, record, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local now = now_ms()
local since, server = lease_of(node)
if not since or server ~= server_id() then since, server = int(now), server_id() end
redis.call('SET', lease_key(node), since .. ' ' .. server, 'PX', lease_ms)
redis.call('HSET', NODE_RECORDS, node, record)
redis.call('ZADD', NODES, int(now + lease_ms), node)
redis.call('HDEL', GONE, node)
redis.call('SET', BORN, int(now), 'NX')
return since
