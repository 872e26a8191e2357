-- Puts the `stream.stopped` of a run into the outbox of a node, the first time: for its owner, or for any node when the
-- owner has had its time.
-- ARGV: id, run, node, id of the event ('': the stream has no webhooks), its text
-- Answer: 1, or 0 if another event has announced the end, or may do so
local node, event, text = ARGV[3], ARGV[4], ARGV[5]
local run = run_of(ARGV[1], ARGV[2])
local due = redis.call('ZSCORE', UNANNOUNCED, run)
if not due then return 0 end
local owner = string.match(redis.call('HGET', ENDS, run), '^%S*')
if owner ~= node and tonumber(due) > now_ms() then return 0 end
redis.call('ZREM', UNANNOUNCED, run)
redis.call('HDEL', ENDS, run)
if event ~= '' then put_event(node, event, text) end
return 1
