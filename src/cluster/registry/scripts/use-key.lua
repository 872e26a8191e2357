-- Notes that an encoder has connected with a stream key.
-- ARGV: id, key id
local id, now = ARGV[1], now_ms()
if field(id, 'status') ~= '' then put_key(id, ARGV[2], now, now) end
return 1
