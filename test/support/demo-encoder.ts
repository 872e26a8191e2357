/**
 * Our own encoder, which publishes the demo clip in a loop, in real time, until the test ends.
 *
 * @module
 */
import { publish, type PublishOptions } from '../../src/cli/publisher/publisher.ts'
import type { MediaFile } from '../../src/cli/publisher/paced-file.ts'

const CLIP = new URL('../../fixtures/demo.mpegts', import.meta.url)

interface Test {
  teardown(close: () => unknown): unknown
}

export interface TestEncoder {
  /** Sentences about its connections. */
  readonly events: readonly string[]
  /** Resolves when it has ended, to the error if there was one. */
  readonly end: Promise<unknown>
  stop(): void
}

export interface TestEncoderOptions extends Pick<PublishOptions, 'retry'> {
  /** Whether it may end by an error, which otherwise fails the test. */
  readonly mayFail?: boolean
  /** Default: the demo clip. */
  readonly file?: MediaFile
}

export function publishDemo(
  t: Test,
  url: string,
  { retry = false, mayFail = false, file = CLIP }: TestEncoderOptions = {},
): TestEncoder {
  const ended = new AbortController()
  const events: string[] = []
  const call = (): Promise<unknown> =>
    publish({
      ...{ file, url, loop: true, retry, signal: ended.signal },
      onEvent: (sentence) => events.push(sentence),
    }).catch((error: unknown) => {
      // A busy machine may not answer the first call in time.
      if ((error as { code?: unknown }).code === 'SRT_TIMEOUT') return call()
      throw error
    })
  const done = call()
  const end = done.then(
    () => undefined,
    (error: unknown) => error,
  )
  const stop = () => ended.abort()
  t.teardown(() => {
    stop()
    return mayFail ? end : done
  })
  return { events, end, stop }
}
