-- Streams that a node owns, in the order of their ids.
-- ARGV: node, id before the first one, limit, 1 for stopped ones that linger ('0': running ones)
-- Answer: id, fence and so on
local key_of = ARGV[4] == '1' and lingering_key or owned_key
local streams = {}
for _, id in ipairs(page(key_of(ARGV[1]), ARGV[2], tonumber(ARGV[3]))) do
  table.insert(streams, id)
  table.insert(streams, field(id, 'fence'))
end
return streams
