import { createSocket } from 'node:dgram'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import t from 'tap'
import {
  formatLocalAddress,
  KernelDropMonitor,
  parseKernelDrops,
} from '../../../src/srt/io/kernel-drops.ts'
import { until } from '../../support/until.ts'

/** Linux 6.18: /proc/net/udp and udp6, each with its trailing spaces. */
const UDP = `\
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops            
11666: 0100007F:D99D 0100007F:2760 01 00000000:00000000 00:00000000 00000000     0        0 677135 2 000000009ac82826 0        
15189: 020200C0:2760 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 677128 2 0000000012e68c1e 0        
15189: 0100007F:2760 00000000:0000 07 00000000:00001200 00:00000000 00000000     0        0 677127 2 00000000e568617d 18       
15190: 00000000:2761 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 677129 2 000000007ea9717d 0        
`
const UDP6 = `\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 9974: 00000000000000000000000001000000:D301 00000000000000000000000001000000:2760 01 00000000:00000000 00:00000000 00000000     0        0 677136 2 00000000b83e7f8d 0
15189: 000080FE00000000FF00FC00010000FE:2760 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 677133 2 00000000e9e8d626 0
15189: 00000000000000000000000001000000:2760 00000000000000000000000000000000:0000 07 00000000:00001200 00:00000000 00000000     0        0 677130 2 00000000b422c957 7
15190: 00000000000000000000000000000000:2761 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 677131 2 000000002e023bbf 0
`

function readKernelDrops(sockets: readonly AddressInfo[]): Promise<number | undefined> {
  return new KernelDropMonitor({
    readSockets: () => sockets,
    advice: undefined,
    onWarning: () => undefined,
  }).read(0)
}

const ipv4 = (address: string, port: number) => ({ address, port, family: 'IPv4' })
const ipv6 = (address: string, port: number) => ({ address, port, family: 'IPv6' })

t.test('parses drops by address and port (proc(5))', async (t) => {
  const of = (table: string, socket: AddressInfo) =>
    parseKernelDrops(table).find(({ address }) => address === formatLocalAddress(socket))
  t.equal(parseKernelDrops(UDP).length, 4)
  t.match(of(UDP, ipv4('127.0.0.1', 10_080)), { drops: 18, inode: '677127' })
  t.match(of(UDP, ipv4('192.0.2.2', 10_080)), { drops: 0 })
  t.match(of(UDP, ipv4('0.0.0.0', 10_081)), { drops: 0 })
  t.equal(of(UDP, ipv4('127.0.0.1', 10_081)), undefined)
  t.equal(parseKernelDrops(UDP6).length, 4)
  t.match(of(UDP6, ipv6('::1', 10_080)), { drops: 7, inode: '677130' })
  t.match(of(UDP6, ipv6('::', 10_081)), { drops: 0 })
  t.match(of(UDP6, ipv6('fe80::fc:ff:fe00:1%eth0', 10_080)), { drops: 0 })
  t.strictSame(parseKernelDrops(''), [])
})

t.test('reads the drops of a socket whose buffer is full', async (t) => {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  const sender = createSocket('udp4')
  t.teardown(() => [socket, sender].forEach((each) => each.close()))
  await once(socket, 'listening')
  sender.connect(socket.address().port, '127.0.0.1')
  await once(sender, 'connect')
  if ((await readKernelDrops([socket.address()])) === undefined) {
    t.pass('skipped', { skip: 'needs Linux, which counts drops' })
    return
  }
  t.equal(await readKernelDrops([socket.address()]), 0)
  let received = 0
  socket.on('message', () => received++)
  socket.setRecvBufferSize(64 * 1024)
  const sent = 500
  for (let datagram = 0; datagram < sent; datagram++) sender.send(Buffer.alloc(1316))
  const drops = (await readKernelDrops([socket.address(), sender.address()]))!
  t.ok(drops > 0)
  await until(`${sent - drops} of ${sent} datagrams`, () => received === sent - drops)
})

t.test('returns undefined for a socket in no table', async (t) => {
  t.equal(await readKernelDrops([ipv4('192.0.2.77', 9)]), undefined)
})
