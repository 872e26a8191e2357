-- Appends a command to those of a node.
-- ARGV: key, limit of commands, time in ms after which unread ones are forgotten, command
local id = redis.call('XADD', ARGV[1], 'MAXLEN', '~', ARGV[2], '*', 'command', ARGV[4])
redis.call('PEXPIRE', ARGV[1], ARGV[3])
return id
