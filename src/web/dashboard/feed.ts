/**
 * Live snapshots, over a connection that is opened again whenever it ends.
 *
 * @module
 */
import { readSession } from './calls.ts'
import type { ListFilter, SessionState, Snapshot } from './wire.ts'

/** Time without a snapshot after which the connection counts as lost. */
const MAX_SILENCE_MS = 8000

const RETRY_MS = 3000

interface FeedHandlers {
  onSnapshot(snapshot: Snapshot): void
  onConnection(isOpen: boolean): void
  onLoggedOut(session: SessionState): void
}

/** Part of the list, and the stream whose details are shown; what is empty is the server's default. */
export interface View {
  readonly filter: ListFilter | ''
  readonly search: string
  readonly sort: string
  readonly order: 'ascending' | 'descending'
  readonly page: string
  readonly stream: string
}

/** @returns function that ends it */
export function followSnapshots(view: View, handlers: FeedHandlers): () => void {
  const query = new URLSearchParams(Object.entries(view).filter(([, value]) => value !== ''))
  let source: EventSource | undefined
  let timer = 0
  let isEnded = false

  const retryIn = (ms: number) => {
    clearTimeout(timer)
    timer = window.setTimeout(() => void restart(), ms)
  }

  const restart = async () => {
    source?.close()
    handlers.onConnection(false)
    const session = await readSession()
    if (isEnded) return
    if (session.open) open()
    else handlers.onLoggedOut(session)
  }

  const open = () => {
    source = new EventSource(`events?${query}`)
    retryIn(MAX_SILENCE_MS)
    source.addEventListener('message', ({ data }: MessageEvent<string>) => {
      retryIn(MAX_SILENCE_MS)
      handlers.onConnection(true)
      handlers.onSnapshot(JSON.parse(data) as Snapshot)
    })
    // Before the browser's own attempt, which cannot tell that the session is over.
    source.addEventListener('error', () => {
      source?.close()
      handlers.onConnection(false)
      retryIn(RETRY_MS)
    })
  }

  open()
  return () => {
    isEnded = true
    clearTimeout(timer)
    source?.close()
  }
}
