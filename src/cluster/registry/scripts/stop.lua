-- Stops a stream of any owner.
-- ARGV: id, reason, run to stop ('': whichever runs), node and fence if its owner stops it ('': somebody else), linger in
--   ms, time in ms for which the record is kept, 1 to revoke the stream keys issued so far, limit of streams with revoked keys
-- Answer: UNKNOWN, CHANGED or STALE with the record, or OK with the record, also of one that was stopped already
local id, reason, run, node, fence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local linger_ms, retain_ms, max_floors = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[9])
local key, now = record_key(id), now_ms()
sweep(now)
if ARGV[8] == '1' then
  -- The node that issued the last key may have a clock ahead of this one.
  local issued = math.max(now, number(id, 'keyIssuedAt'))
  raise_floor(id, math.max(math.floor(issued / 1000), key_floor(id)) + 1, max_floors)
end
local status, owner = field(id, 'status'), field(id, 'owner')
if status == '' then return { 'UNKNOWN' } end
if run ~= '' and field(id, 'run') ~= run then return answer('CHANGED', id) end

if status == 'STOPPED' then return answer('OK', id) end
if node ~= '' and (owner ~= node or field(id, 'fence') ~= fence) then return answer('STALE', id) end
redis.call('HSET', key, 'reason', reason, 'stoppedAt', int(now), 'lingersUntil', int(now + linger_ms))
set_status(id, status, 'STOPPED')
redis.call('ZREM', UNCLAIMED, id)
if owner ~= '' then
  redis.call('ZREM', owned_key(owner), id)
  redis.call('ZADD', lingering_key(owner), 0, id)
end
redis.call('ZADD', STOPPED, int(now + linger_ms), id)
-- Without a claim so far, no owner may be away, and no number was used; the clock of a node may be ahead of its key.
redis.call('PEXPIRE', key, number(id, 'fence') == 0 and math.max(linger_ms, CLOCKS_MS) or retain_ms)
redis.call('PEXPIRE', list_key(id), linger_ms)
-- The owner knows the totals of the run, so it may announce the end before others do.
redis.call('HSET', ENDS, run_of(id, field(id, 'run')), owner .. ' ' .. reason .. ' ' .. field(id, 's.webhookUrls'))
redis.call('ZADD', UNANNOUNCED, int(holds_lease(owner) and now + ANNOUNCE_MS or now), run_of(id, field(id, 'run')))
return answer('OK', id)
