/**
 * A playlist version that is rendered when it is first read, once for all readers.
 *
 * @module
 */
import type { StreamFile } from './stream-file.ts'

export class RenderedFile {
  readonly #render: () => StreamFile
  #file: StreamFile | undefined
  /** Latest earlier version that was read. */
  #previous: StreamFile | undefined
  /** Whether nothing has changed since then; undefined until a reader of the version before asks. */
  #isPrevious: boolean | undefined

  /**
   * @param render  called when this version is first read
   * @param previous  version before
   */
  constructor(render: () => StreamFile, previous: RenderedFile | undefined) {
    this.#render = render
    this.#previous = previous && previous.#latest
  }

  /** File of this version; that of the version before if nothing has changed, so that its ETag stays. */
  get file(): StreamFile {
    if (this.#file === undefined) {
      const file = this.#render()
      const previous = this.#previous
      this.#file = previous !== undefined && isSameFile(file, previous) ? previous : file
      this.#previous = undefined
    }
    return this.#file
  }

  /**
   * Whether this is the version that a reader has. Does not read it: readers are woken by the first change of a release,
   * and what they read must have all of it.
   */
  isVersion(version: string): boolean {
    if (this.#file !== undefined) return this.#file.version === version
    const previous = this.#previous
    if (previous?.version !== version) return false
    return (this.#isPrevious ??= isSameFile(this.#render(), previous))
  }

  get #latest(): StreamFile | undefined {
    return this.#file ?? this.#previous
  }
}

/** Whether two versions of a playlist have the same bytes and the same lifetime. */
function isSameFile(a: StreamFile, b: StreamFile): boolean {
  if (a.maxAgeSec !== b.maxAgeSec || a.chunks.length !== b.chunks.length) return false
  return a.chunks.every(
    (chunk, index) => chunk === b.chunks[index] || chunk.equals(b.chunks[index]!),
  )
}
