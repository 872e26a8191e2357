-- Streams in the order of their ids.
-- ARGV: id before the first one ('': from the start), limit, status ('': any)
-- Answer: id, record without stream keys, and so on
local after, limit, status = ARGV[1], tonumber(ARGV[2]), ARGV[3]
sweep(now_ms())
local key = status == '' and STREAMS or STREAMS .. ':' .. status
local streams = {}
for _, id in ipairs(page(key, after, limit)) do
  local fields, record = redis.call('HGETALL', record_key(id)), {}
  for i = 1, #fields, 2 do
    if not string.match(fields[i], '^k%.') then insert(record, fields[i], fields[i + 1]) end
  end
  -- A record may expire, or be evicted, before its linger is swept.
  if #record == 0 then
    unlist(id)
  else
    table.insert(streams, id)
    table.insert(streams, record)
  end
end
return streams
