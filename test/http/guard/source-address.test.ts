import t from 'tap'
import { sourceOf } from '../../../src/http/guard/source-address.ts'

t.test('names an IPv4 address as a source, also in IPv4-mapped form', async (t) => {
  t.equal(sourceOf('192.0.2.1'), '192.0.2.1')
  t.equal(sourceOf('::ffff:192.0.2.1'), '192.0.2.1')
})

t.test('names the /64 of an IPv6 address as a source', async (t) => {
  const source = sourceOf('2001:db8:1:2:3:4:5:6')
  t.equal(source, '20010db800010002')
  t.equal(sourceOf('2001:db8:1:2::1'), source)
  t.equal(sourceOf('2001:db8:1:2:ffff::'), source)
  t.equal(sourceOf('2001:db8::1'), '20010db800000000')
  t.equal(sourceOf('2001:db8::2:0:0:1'), '20010db800000000')
  t.equal(sourceOf('2a02::5:1:2:3:4'), '2a02000000000005')
  t.equal(sourceOf('2a02::9:1:2:3:4'), '2a02000000000009')
  t.equal(sourceOf('::2'), '0000000000000000')
  t.equal(sourceOf('fe80::1%eth0'), 'fe80000000000000')
})

t.test('names no source for the loopback and Unix sockets', async (t) => {
  for (const address of ['', '127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']) {
    t.equal(sourceOf(address), undefined, address)
  }
})
