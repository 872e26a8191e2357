-- Running streams that a node owns, in the order of their ids.
-- ARGV: node, id before the first one, limit
-- Answer: id, fence and so on
local streams = {}
for _, id in ipairs(page(owned_key(ARGV[1]), ARGV[2], tonumber(ARGV[3]))) do
  table.insert(streams, id)
  table.insert(streams, field(id, 'fence'))
end
return streams
