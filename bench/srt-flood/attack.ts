/**
 * A worker that floods a listener with handshakes, from one address.
 *
 * @module
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createRandom } from '../../test/support/random.ts'
import { pace } from '../support/pace.ts'
import { answer, readTask } from '../support/worker.ts'
import { forgeConclusion, forgeInduction } from './forged.ts'

export interface AttackTask {
  readonly port: number
  readonly inductionsPerSec: number
  readonly conclusionsPerSec: number
}

export interface AttackAnswers {
  /** Floods for so long. */
  flood(durationMs: number): Promise<AttackReport>
}

export interface AttackReport {
  readonly inductions: number
  readonly conclusions: number
  /** Datagrams that came back. */
  readonly answers: number
  readonly elapsedSec: number
}

/** Callers that it pretends to be. */
const FORGED = 1000

const { port, inductionsPerSec, conclusionsPerSec } = (await readTask()) as AttackTask
const random = createRandom(port)
const inductions = Array.from({ length: FORGED }, () => forgeInduction(random))
const conclusions = Array.from({ length: FORGED }, () => forgeConclusion(random))
const socket = createSocket('udp4')
const connected = once(socket, 'connect')
socket.connect(port, '127.0.0.1')
await connected

const sent = { inductions: 0, conclusions: 0 }
let answers = 0
socket.on('message', () => answers++)

const perSec = inductionsPerSec + conclusionsPerSec
const send = (number: number) => {
  const isConclusion = (number * conclusionsPerSec) % perSec < conclusionsPerSec
  if (isConclusion) socket.send(conclusions[sent.conclusions++ % FORGED]!)
  else socket.send(inductions[sent.inductions++ % FORGED]!)
}

answer<AttackAnswers>({
  flood: async (durationMs) => {
    const startMs = performance.now()
    const datagrams = (perSec * durationMs) / 1000
    await pace(perSec, send, (number) => number < datagrams)
    return { ...sent, answers, elapsedSec: (performance.now() - startMs) / 1000 }
  },
})
