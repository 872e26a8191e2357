/**
 * Requests of an edge's viewers, collected for its next report to the origin.
 *
 * @module
 */
import type { ViewerIdentity } from '../../playback/playback-source.ts'
import { hashOfViewer } from '../../service/viewers/viewer-count.ts'
import type { StreamAudience, WorkerReport } from '../../service/viewers/worker-reports.ts'

/** Maximum number of viewers of a stream in a report: those beyond it count later, if they stay. */
const MAX_VIEWERS = 4096

/** Viewers are sent in one report of five, since each counts for 30 s. */
const VIEWERS_EVERY = 5

interface Requests {
  readonly sentBytes: Record<string, number>
  readonly viewers: Set<number>
}

/** Inputs: `addSent`, `addViewer`. Output: `take`, once a second. */
export class Audience {
  readonly #requests = new Map<string, Requests>()
  #reports = 0

  addSent(streamId: string, name: string, sizeBytes: number): void {
    const { sentBytes } = this.#of(streamId)
    sentBytes[name] = (sentBytes[name] ?? 0) + sizeBytes
  }

  addViewer(streamId: string, viewer: ViewerIdentity): void {
    this.addHash(streamId, hashOfViewer(viewer))
  }

  /** Adds a viewer of another edge, which is behind this one. */
  addHash(streamId: string, hash: number): void {
    const { viewers } = this.#of(streamId)
    if (viewers.size < MAX_VIEWERS) viewers.add(hash)
  }

  /** @returns what came since the last call, and is forgotten now */
  take(): WorkerReport['streams'] {
    const hasViewers = ++this.#reports % VIEWERS_EVERY === 0
    const taken: Record<string, StreamAudience> = {}
    for (const [streamId, { sentBytes, viewers }] of this.#requests) {
      taken[streamId] = { sentBytes, viewers: hasViewers ? [...viewers] : [] }
      if (hasViewers) this.#requests.delete(streamId)
      else this.#requests.set(streamId, { sentBytes: {}, viewers })
    }
    return taken
  }

  #of(streamId: string): Requests {
    const known = this.#requests.get(streamId)
    if (known !== undefined) return known
    const requests: Requests = { sentBytes: {}, viewers: new Set() }
    this.#requests.set(streamId, requests)
    return requests
  }
}
