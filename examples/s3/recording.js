/**
 * One recording: segments are uploaded in order, each followed by the playlist that lists it.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** Maximum size of the segments that wait for their upload. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024

/** Times between the attempts of an upload. */
const RETRY_MS = [250, 1000, 4000, 8000]

/** @typedef {Pick<import('millrace').Segment, 'uri' | 'chunks' | 'sizeBytes' | 'durationSec' | 'programDateTimeMs' | 'discontinuity'>} Entry */

/** @typedef {(name: string, body: Buffer<ArrayBuffer>, contentType: string) => Promise<void>} Upload */

export class Recording {
  #options
  /** @type {Entry[]} */
  #queue = []
  #queuedBytes = 0
  /** Entries of the playlist, gaps included. */
  #entries = ''
  /** @type {Promise<void> | undefined} */
  #working

  /**
   * @param {object} options
   * @param {string} options.folder  of all files of the recording
   * @param {number} options.targetDurationSec  EXT-X-TARGETDURATION; no segment is longer
   * @param {Upload} options.upload
   * @param {(error: unknown) => void} options.onError
   */
  constructor(options) {
    this.#options = options
  }

  /**
   * Queues a segment; beyond 64 MiB it becomes a gap.
   *
   * @param {import('millrace').Segment} segment
   */
  add(segment) {
    const { uri, durationSec, programDateTimeMs, discontinuity } = segment
    const hasRoom = this.#queuedBytes + segment.sizeBytes <= MAX_QUEUED_BYTES
    const { chunks, sizeBytes } = hasRoom ? segment : { chunks: [], sizeBytes: 0 }
    this.#queue.push({ uri, chunks, sizeBytes, durationSec, programDateTimeMs, discontinuity })
    this.#queuedBytes += sizeBytes
    if (!hasRoom) this.#options.onError(new Error(`${uri} is dropped: too many segments wait`))
    this.#working ??= this.#work().finally(() => (this.#working = undefined))
  }

  /** Uploads what waits, and the playlist with its end. */
  async end() {
    await this.#working
    await this.#uploadPlaylist('#EXT-X-ENDLIST\n')
  }

  async #work() {
    for (let segment = this.#queue[0]; segment !== undefined; segment = this.#queue[0]) {
      const isStored =
        segment.sizeBytes > 0 &&
        (await this.#upload(segment.uri, Buffer.concat(segment.chunks), 'video/mp2t'))
      this.#queue.shift()
      this.#queuedBytes -= segment.sizeBytes
      this.#entries += formatEntry(segment, isStored)
      await this.#uploadPlaylist()
    }
  }

  /** @param {string} end */
  #uploadPlaylist(end = '') {
    const head =
      '#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-PLAYLIST-TYPE:EVENT\n' +
      `#EXT-X-TARGETDURATION:${this.#options.targetDurationSec}\n#EXT-X-MEDIA-SEQUENCE:0\n`
    const body = Buffer.from(head + this.#entries + end)
    return this.#upload('playlist.m3u8', body, 'application/vnd.apple.mpegurl')
  }

  /**
   * @param {string} name
   * @param {Buffer<ArrayBuffer>} body
   * @param {string} contentType
   * @returns whether it is stored
   */
  async #upload(name, body, contentType) {
    const { folder, upload, onError } = this.#options
    for (let attempt = 0; ; attempt++) {
      try {
        await upload(`${folder}/${name}`, body, contentType)
        return true
      } catch (error) {
        onError(error)
        const delayMs = RETRY_MS[attempt]
        if (delayMs === undefined) return false
        await sleep(delayMs)
      }
    }
  }
}

/**
 * @param {Entry} entry
 * @param {boolean} isStored
 */
function formatEntry({ uri, durationSec, programDateTimeMs, discontinuity }, isStored) {
  return [
    ...(discontinuity ? ['#EXT-X-DISCONTINUITY'] : []),
    `#EXT-X-PROGRAM-DATE-TIME:${new Date(programDateTimeMs).toISOString()}`,
    ...(isStored ? [] : ['#EXT-X-GAP']),
    `#EXTINF:${durationSec.toFixed(5)},`,
    `${uri}\n`,
  ].join('\n')
}
