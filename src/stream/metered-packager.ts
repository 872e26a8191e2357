/**
 * Packager with a CPU budget, behind steady audio: demuxer outputs in, segments out.
 *
 * @module
 */
import { Packager, type PackagerOptions, type PackagerOutput } from '../hls/packager.ts'
import { SteadyAudio } from '../hls/rendition/steady-audio.ts'
import type { SourceFact } from '../hls/source-fact.ts'
import type { DemuxerOutput } from '../mpegts/demux/demuxer-output.ts'
import type { Track } from '../mpegts/track.ts'
import { MADE_UNIT_US, workOfPackaging } from './work.ts'
import type { WorkBudget } from './work-budget.ts'

/** Calling order as for `Packager`. */
export class MeteredPackager {
  readonly #audio: SteadyAudio
  readonly #packager: Packager
  readonly #budget: WorkBudget
  #hasSegment: boolean

  /** @param earlierTracks  tracks of the segments before the first one; empty for none */
  constructor(options: PackagerOptions, budget: WorkBudget, earlierTracks: readonly Track[] = []) {
    const { formats = ['ts'], tracks: policy = 'compatible' } = options
    this.#audio = new SteadyAudio({ formats, policy })
    this.#packager = new Packager(options)
    this.#budget = budget
    this.#hasSegment = earlierTracks.length > 0
    if (this.#hasSegment) this.#audio.begin(earlierTracks)
  }

  get queuedBytes(): number {
    return this.#packager.queuedBytes
  }

  /** Facts that hold now. */
  get facts(): readonly SourceFact[] {
    return [...this.#packager.facts, ...this.#audio.facts]
  }

  push(output: DemuxerOutput, wallMs: number): readonly PackagerOutput[] {
    const [first, ...made] = this.#audio.push(output)
    if (first === undefined) return []
    const outputs = this.#pay(this.#packager.push(first, wallMs))
    if (made.length === 0) return outputs
    this.#budget.spend(made.length * MADE_UNIT_US)
    return [...outputs, ...made.flatMap((unit) => this.#pay(this.#packager.push(unit, wallMs)))]
  }

  discontinuity(replacedMs?: number): readonly PackagerOutput[] {
    const outputs = this.#pay(this.#packager.discontinuity(replacedMs))
    this.#audio.reset()
    return outputs
  }

  settle(): readonly PackagerOutput[] {
    return this.#pay(this.#packager.settle())
  }

  end(): readonly PackagerOutput[] {
    return this.#pay(this.#packager.end())
  }

  #pay(outputs: readonly PackagerOutput[]): readonly PackagerOutput[] {
    for (const output of outputs) {
      this.#budget.spend(workOfPackaging(output))
      if (this.#hasSegment || output.type !== 'segment') continue
      this.#hasSegment = true
      this.#audio.begin(this.#packager.tracks)
    }
    return outputs
  }
}
