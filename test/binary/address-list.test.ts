import t from 'tap'
import { addressList, isAddressBlock, listContains } from '../../src/binary/address-list.ts'

t.test('a list contains its addresses, its blocks, and mapped forms of IPv4', async (t) => {
  const list = addressList(['192.0.2.1', '10.20.30.40/16', 'fe80::/10', '2001:db8::1'])
  const contained = ['192.0.2.1', '10.20.255.1', '::ffff:10.20.0.1', 'fe80::1%eth0', '2001:db8::1']
  for (const address of contained) t.ok(listContains(list, address), address)
  for (const address of ['192.0.2.2', '10.21.0.1', '::ffff:192.0.2.2', '2001:db8::2']) {
    t.notOk(listContains(list, address), address)
  }
})

t.test('recognizes addresses and CIDR blocks', async (t) => {
  for (const text of ['192.0.2.1', '0.0.0.0/0', '192.0.2.1/32', '::', '::/0', '2001:db8::/128']) {
    t.ok(isAddressBlock(text), text)
  }
  const others = ['', 'x', '192.0.2', '192.0.2.1/33', '::/129', '::/-1', '::/', '::/0/0', '::/1e1']
  for (const text of others) t.notOk(isAddressBlock(text), text)
})
