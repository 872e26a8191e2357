/**
 * A worker full of our callers that read a stream, and count its payloads.
 *
 * @module
 */
import { connect, parseSrtUrl } from '../../src/srt/index.ts'
import { answer, readTask } from '../support/worker.ts'

export interface ReadTask {
  readonly url: string
  readonly readers: number
}

export interface ReaderAnswers {
  report(): ReadReport
}

/** Sums over all readers. */
export interface ReadReport {
  readonly packets: number
  /** Never delivered. */
  readonly lost: number
}

const { url, readers } = (await readTask()) as ReadTask
let packets = 0
let lost = 0
for (let index = 0; index < readers; index++) {
  await connect({
    ...parseSrtUrl(url),
    sink: {
      open: () => {},
      push: () => void packets++,
      gap: (lostPackets) => void (lost += lostPackets),
      end: (reason) => {
        throw new Error(`a reader was disconnected: ${reason}`)
      },
    },
  })
}

answer<ReaderAnswers>({ report: () => ({ packets, lost }) })
