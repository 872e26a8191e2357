import { overwriteViews, type MediaMemory } from '../../src/mp4/media-memory.ts'

const CHUNK_BYTES = 65_536

/** Memory of its own for a `FragmentWriter`. */
export class ChunkMemory implements MediaMemory {
  readonly #createChunk: () => Buffer
  #chunk: Buffer = Buffer.alloc(0)
  /** Offset behind the last byte in the chunk, and of the first that was not taken. */
  #end = 0
  #start = 0
  #full: Buffer[] = []

  /** @param createChunk  returns the next chunk, not empty, owned by the memory from then on */
  constructor(createChunk: () => Buffer = () => Buffer.allocUnsafeSlow(CHUNK_BYTES)) {
    this.#createChunk = createChunk
  }

  append(chunks: readonly Uint8Array[]): void {
    for (const bytes of chunks) {
      for (let taken = 0; taken < bytes.length;) {
        if (this.#end === this.#chunk.length) this.#nextChunk()
        const count = Math.min(bytes.length - taken, this.#chunk.length - this.#end)
        const piece = count === bytes.length ? bytes : bytes.subarray(taken, taken + count)
        this.#chunk.set(piece, this.#end)
        this.#end += count
        taken += count
      }
    }
  }

  overwrite(fromEnd: number, bytes: Uint8Array): void {
    this.#closeRun()
    overwriteViews(this.#full, fromEnd, bytes)
  }

  take(): Buffer[] {
    this.#closeRun()
    const views = this.#full
    this.#full = []
    return views
  }

  #nextChunk(): void {
    this.#closeRun()
    this.#chunk = this.#createChunk()
    this.#start = 0
    this.#end = 0
  }

  #closeRun(): void {
    if (this.#end > this.#start) this.#full.push(this.#chunk.subarray(this.#start, this.#end))
    this.#start = this.#end
  }
}
