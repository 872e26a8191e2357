import * as fc from 'fast-check'
import t from 'tap'
import {
  hostOf,
  isForbidden,
  mayConnect,
  parseAllowList,
} from '../../src/outbound/address-rules.ts'

const ALL = parseAllowList('')!

function allows(list: string, host: string, address = host): boolean {
  return mayConnect(parseAllowList(list)!, host, address)
}

t.test(
  'forbids link-local, metadata, unspecified and multicast addresses in every form',
  async (t) => {
    const hosts = [
      '169.254.0.0',
      '169.254.169.254',
      '169.254.255.255',
      '0xa9.254.0251.254',
      '2852039166',
      '[::ffff:169.254.169.254]',
      '[0:0:0:0:0:ffff:a9fe:a9fe]',
      '[64:ff9b::169.254.169.254]',
      '[64:ff9b::100.100.100.200]',
      '[64:ff9b::168.63.129.16]',
      '[64:ff9b::0.0.0.1]',
      '[64:ff9b::239.1.2.3]',
      '[2002:a9fe:a9fe::1]',
      '[2002:6464:64c8::]',
      '[2002:c000:c0:ffff::1]',
      '[2002:1:2::]',
      '[2002:e000:fb::1]',
      '[fe80::1]',
      '[febf:ffff::1]',
      '[fd00:ec2::23]',
      '[fd00:ec2::254]',
      '[fd20:ce::254]',
      '[fd00:42::42]',
      '[fd00:c1::a9fe:a9fe]',
      '[fd00:100::100:200]',
      '[fd00:a9fe:a9fe::1]',
      '100.100.100.200',
      '168.63.129.16',
      '0.0.0.0',
      '0',
      '[::]',
      '[::ffff:0.0.0.0]',
      '224.0.0.251',
      '239.255.255.255',
      '255.255.255.255',
      '[ff02::1]',
    ]
    for (const host of hosts) {
      const address = hostOf(new URL(`http://${host}/`))
      t.equal(isForbidden(ALL, address), true, host)
      t.equal(allows('0.0.0.0/0, ::/0', address), false, `${host} where all is allowed`)
      t.equal(allows('.example.org', 'hooks.example.org', address), false, `${host} under a name`)
    }
    const neighbors = ['169.253.255.255', '169.255.0.0', '10.0.0.1', '127.0.0.1', '223.255.255.255']
    const translated = [
      '64:ff9b::10.0.0.1',
      '64:ff9b::169.253.0.1',
      '2002:a00:1::1',
      '2002:6464:64c9::',
    ]
    for (const address of [
      ...neighbors,
      ...translated,
      '::1',
      'fd00:ec3::1',
      'fd00::1',
      'fec0::1',
      '::ffff:10.0.0.1',
    ]) {
      t.equal(isForbidden(ALL, address), false, address)
    }
  },
)

t.test('forbids IPv6 addresses that carry a forbidden IPv4 address', async (t) => {
  // Forms of 169.254.169.254.
  const forms = {
    'IPv4-compatible (RFC 4291 2.5.5.1)': ['::169.254.169.254'],
    'IPv4-mapped (RFC 4291 2.5.5.2)': ['::ffff:169.254.169.254'],
    'IPv4-translated (RFC 2765 2.1)': ['::ffff:0:169.254.169.254'],
    'NAT64, well-known prefix (RFC 6052 2.1)': ['64:ff9b::169.254.169.254'],
    'NAT64, local prefixes of 48, 56, 64 and 96 bits (RFC 8215, RFC 6052 2.2)': [
      '64:ff9b:1:a9fe:a9:fe00::',
      '64:ff9b:1:ffa9:fe:a9fe::',
      '64:ff9b:1:ffff:a9:fea9:fe00:0',
      '64:ff9b:1::169.254.169.254',
      '64:ff9b:1:ffff:ff:ffff:169.254.169.254',
    ],
    '6to4 (RFC 3056 2)': ['2002:a9fe:a9fe::1'],
    'Teredo, as server and as client (RFC 4380 4)': ['2001:0:a9fe:a9fe::1', '2001::5601:5601'],
    'ISATAP (RFC 5214 6.1)': ['2001:db8::5efe:169.254.169.254', 'fd00::200:5efe:a9fe:a9fe'],
  }
  for (const [name, addresses] of Object.entries(forms)) {
    for (const address of addresses) t.equal(isForbidden(ALL, address), true, `${name}: ${address}`)
  }
  const allowed = [
    '::1',
    '::10.0.0.1',
    '::ffff:0:10.0.0.1',
    '64:ff9b:1:a00:0:100::',
    '64:ff9b:1::10.0.0.1',
    '2001:db8::5efe:10.0.0.1',
    '2001:db8::5eff:169.254.169.254',
    '2001:db8::169.254.169.254',
  ]
  for (const address of allowed) t.equal(isForbidden(ALL, address), false, address)
})

t.test('forbids link-local addresses in every notation', async () => {
  const byte = fc.integer({ min: 0, max: 255 })
  const spell = fc.constantFrom(
    (n: number) => String(n),
    (n: number) => `0x${n.toString(16)}`,
    (n: number) => `0${n.toString(8)}`,
  )
  fc.assert(
    fc.property(byte, byte, fc.array(spell, { minLength: 4, maxLength: 4 }), (c, d, spells) => {
      const host = [169, 254, c, d].map((n, i) => spells[i]!(n)).join('.')
      return isForbidden(ALL, hostOf(new URL(`http://${host}/`)))
    }),
  )
})

t.test(
  'parses names, suffixes, addresses and CIDR blocks, and rejects anything else',
  async (t) => {
    const list = '10.20.0.0/16, 192.0.2.7,fd00:1::/32, Hooks.Example.org, .internal.example.org'
    for (const [host, address, isAllowed] of [
      ['10.20.255.1', '10.20.255.1', true],
      ['10.21.0.1', '10.21.0.1', false],
      ['192.0.2.7', '192.0.2.7', true],
      ['::ffff:192.0.2.7', '::ffff:192.0.2.7', true],
      ['fd00:1::5', 'fd00:1::5', true],
      ['fd00:2::5', 'fd00:2::5', false],
      ['hooks.example.org', '198.51.100.1', true],
      ['a.hooks.example.org', '198.51.100.1', false],
      ['other.example.org', '198.51.100.1', false],
      ['other.example.org', '10.20.0.1', true],
      ['a.b.internal.example.org', '198.51.100.1', true],
      ['internal.example.org', '198.51.100.1', false],
      ['notinternal.example.org', '198.51.100.1', false],
    ] as const) {
      t.equal(allows(list, host, address), isAllowed, `${host} at ${address}`)
    }
    const wrong = [
      ',',
      'a,',
      '10.0.0.0/33',
      '10.0.0.0/',
      '10.0.0.0/8/8',
      '10.0.0',
      'x y',
      '*.a.b',
      '/8',
    ]
    for (const text of [...wrong, 'http://a.b', '[::1]', '::1/129', 'a:80', '.']) {
      t.equal(parseAllowList(text), undefined, text)
    }
  },
)

t.test('forbids an unlisted name without a look-up if the list has no addresses', async (t) => {
  const names = parseAllowList('.example.org')!
  t.equal(isForbidden(names, 'example.com'), true)
  t.equal(isForbidden(names, 'a.example.org'), false)
  t.equal(isForbidden(names, '127.0.0.1'), true)
  t.equal(isForbidden(parseAllowList('.example.org,10.0.0.0/8')!, 'example.com'), false)
})

t.test('strips brackets and the final dot from the host of a URL', async (t) => {
  t.equal(hostOf(new URL('https://Receiver.Example.:8443/hook')), 'receiver.example')
  t.equal(hostOf(new URL('http://[FD00::1]/')), 'fd00::1')
})
