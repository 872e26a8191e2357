-- ARGV: id
-- Answer: UNKNOWN, or OK, the record, and how to reach its owner
local id = ARGV[1]
if field(id, 'status') == '' then return { 'UNKNOWN' } end
return answer('OK', id)
