-- READY streams that nobody has claimed and whose last key has expired, oldest first.
-- ARGV: limit
-- Answer: id, run and so on
local streams = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', UNCLAIMED, '-inf', now_ms(), 'LIMIT', 0, tonumber(ARGV[1]))) do
  table.insert(streams, id)
  table.insert(streams, field(id, 'run'))
end
return streams
