/**
 * Live snapshots, over a connection that is opened again whenever it ends.
 *
 * @module
 */
import { hasSession } from './calls.ts'
import type { Snapshot } from '../wire.ts'

/** Time without a snapshot after which the connection counts as lost. */
const MAX_SILENCE_MS = 8000

const RETRY_MS = 3000

export interface FeedHandlers {
  onSnapshot(snapshot: Snapshot): void
  onConnection(isOpen: boolean): void
  onLoggedOut(): void
}

/** Part of the list: streams of a state, behind an id. */
export interface View {
  readonly status: string
  readonly after: string
}

/** @returns function that ends it */
export function follow(view: View, handlers: FeedHandlers): () => void {
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
    const isAllowed = await hasSession()
    if (isEnded) return
    if (isAllowed) open()
    else handlers.onLoggedOut()
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
