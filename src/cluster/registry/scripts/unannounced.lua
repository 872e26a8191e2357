-- Runs whose end any node may announce, oldest first.
-- ARGV: limit
-- Answer: id and run, reason and webhook URLs and so on
local ends = {}
for _, run in ipairs(redis.call('ZRANGEBYSCORE', UNANNOUNCED, '-inf', now_ms(), 'LIMIT', 0, tonumber(ARGV[1]))) do
  table.insert(ends, run)
  table.insert(ends, redis.call('HGET', ENDS, run))
end
return ends
