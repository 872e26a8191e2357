/**
 * Encoders that ask for what SRT here does not have: the log says what to set, and a metric counts them by reject code.
 */
import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import {
  encodeBlock,
  encodeHsExtension,
  ExtensionType,
  LIVE_FLAGS,
} from '../../src/srt/wire/extension.ts'
import {
  decodeHandshake,
  encodeHandshake,
  HandshakeType,
  type Handshake,
} from '../../src/srt/wire/handshake.ts'
import { encodeInduction } from '../support/induction.ts'
import { startService } from '../support/service.ts'

const HOST = '127.0.0.1'
const TOKEN = randomBytes(32).toString('hex')

const GROUP = encodeBlock(ExtensionType.GROUP, Buffer.alloc(8))
const AES_GCM = encodeBlock(
  ExtensionType.KMREQ,
  Buffer.concat([Buffer.from('12202901000000000401020000000404', 'hex'), Buffer.alloc(40)]),
)

/** Calls with an extension. @returns the type in the response, which is the reject code, and the address of the caller */
async function call(t: Test, srtPort: number, extension: Buffer) {
  const socket = createSocket('udp4')
  t.teardown(() => socket.close())
  socket.bind(0, HOST)
  await once(socket, 'listening')
  const ask = async (datagram: Buffer): Promise<Handshake> => {
    const answered = once(socket, 'message')
    socket.send(datagram, srtPort, HOST)
    const [response] = (await answered) as [Buffer]
    return decodeHandshake(response)!
  }
  const socketId = 77
  const { cookie } = await ask(encodeInduction(socketId, HOST))
  const conclusion: Handshake = {
    version: 5,
    encryptionField: 0,
    extensionField: 5,
    initialSequenceNumber: 0,
    mtuBytes: 1500,
    flowWindowPackets: 8192,
    type: HandshakeType.CONCLUSION,
    socketId,
    cookie,
  }
  const hs = { srtVersion: 0x010501, flags: LIVE_FLAGS, receiverDelayMs: 120, senderDelayMs: 0 }
  const blocks = [encodeHsExtension(ExtensionType.HSREQ, hs), extension]
  const packet = { socketId: 0, timestampUs: 0, peerAddress: HOST, blocks }
  const { type } = await ask(encodeHandshake(conclusion, packet))
  return { type, remote: `${HOST}:${socket.address().port}` }
}

t.test(
  'a socket group of an unknown type and AES-GCM are rejected with a line that says what to set',
  async (t) => {
    const lines: string[] = []
    const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) })
    const { server, url } = await startService(t, { logger, metrics: { token: TOKEN } })
    const headers = { authorization: `Bearer ${TOKEN}` }
    const cases = [
      [1015, GROUP, 'a socket group', 'Set the encoder to one line, or do without a shared port.'],
      [1017, AES_GCM, 'AES-GCM', 'Set the encoder to AES-CTR (libsrt: cryptomode=1).'],
    ] as const
    for (const [code, extension, what, remedy] of cases) {
      const { type, remote } = await call(t, server.srtPort, extension)
      t.equal(type, code)
      const line = `A caller with ${what} is rejected (${code}). ${remedy} Caller: ${remote}`
      t.ok(lines.includes(line), line)
      t.ok(line.length <= 160)
      const metrics = await (await fetch(`${url}/metrics`, { headers })).text()
      t.match(
        metrics,
        new RegExp(`^millrace_srt_handshakes_rejected_total\\{code="${code}"\\} 1$`, 'm'),
      )
    }
  },
)
