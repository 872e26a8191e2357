-- Ports that streams have to themselves, in order. Forgets the others.
-- Answer: port, id, addresses and passphrase of the stream as its options have them ('': none) and so on
local ports, streams = redis.call('HKEYS', PORTS), {}
table.sort(ports)
for _, port in ipairs(ports) do
  local id = stream_at(port)
  if id then
    table.insert(streams, port)
    table.insert(streams, id)
    table.insert(streams, field(id, 's.allowFrom'))
    table.insert(streams, field(id, 's.encryption'))
  else
    redis.call('HDEL', PORTS, port)
  end
end
return streams
