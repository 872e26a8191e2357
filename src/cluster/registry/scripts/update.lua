-- Changes options of a stream of any owner.
-- ARGV: id, then options: name, value and so on
-- Answer: UNKNOWN, or OK and the record
local id = ARGV[1]
if field(id, 'status') == '' then return { 'UNKNOWN' } end
for i = 2, #ARGV, 2 do
  redis.call('HSET', record_key(id), 's.' .. ARGV[i], ARGV[i + 1])
end
return answer('OK', id)
