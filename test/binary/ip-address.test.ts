import t from 'tap'
import {
  addressList,
  bareAddress,
  isAddressBlock,
  listContains,
  networkName,
  parseIpAddress,
} from '../../src/binary/ip-address.ts'

t.test('parses IPv4 to 4 bytes, IPv6 to 16 bytes, and other text to none', async (t) => {
  t.equal(parseIpAddress('192.0.2.1').toString('hex'), 'c0000201')
  t.equal(parseIpAddress('2001:db8::1').toString('hex'), `20010db8${'0'.repeat(23)}1`)
  t.equal(parseIpAddress('::ffff:192.0.2.1').toString('hex'), `${'0'.repeat(20)}ffffc0000201`)
  t.equal(parseIpAddress('fe80::1%eth0').toString('hex'), `fe80${'0'.repeat(27)}1`)
  t.equal(parseIpAddress('localhost').length, 0)
})

t.test('names the network of an address by its first bytes', async (t) => {
  t.equal(networkName('192.0.2.1', 3, 7), '192.0.2')
  t.equal(networkName('::ffff:192.0.2.1', 3, 7), '192.0.2', 'IPv4-mapped')
  t.equal(networkName('2001:db8:1:2ff::1', 3, 7), '20010db8000102')
})

t.test('finds the address in a text with a port, brackets or a zone', async (t) => {
  const texts: [string, string | undefined][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1:51234', '192.0.2.1'],
    ['2001:db8::1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:51234', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%eth0]:443', 'fe80::1'],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.1'],
  ]
  for (const [text, address] of texts) t.equal(bareAddress(text), address, text)
  for (const text of [
    '',
    'unknown',
    '192.0.2',
    '192.0.2.1:',
    '192.0.2.1:x',
    '[]:1',
    '[x',
    '%eth0',
  ]) {
    t.equal(bareAddress(text), undefined, text)
  }
})

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
