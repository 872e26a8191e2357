/**
 * Counts PES packets that are in no segment.
 *
 * @module
 */
import type { RenditionName } from '../file-names.ts'
import type { RenditionWriter } from './rendition-writer.ts'

/** Which counters have the drops of a rendition; undefined: none, since those of another format have them. */
export type DropRole = 'main' | 'other' | undefined

const NO_DROPS = { video: 0, audio: 0, data: 0, oversize: 0 }

/** `count` the renditions before their roles change, and before `stats` are read. */
export class DropCounter {
  /** See `PackagerStats`. */
  readonly stats = {
    damagedPackets: 0,
    oversizePackets: 0,
    droppedAudioPackets: 0,
    droppedDataPackets: 0,
    otherDroppedPackets: 0,
  }
  /** Drops of each rendition that `stats` has. */
  readonly #counted = new Map<RenditionName, typeof NO_DROPS>()

  /** Adds what the rendition has dropped since the last call. */
  count({ name, droppedPackets, oversizePackets }: RenditionWriter, role: DropRole): void {
    const before = this.#counted.get(name) ?? NO_DROPS
    const drops = { ...droppedPackets, oversize: oversizePackets }
    this.#counted.set(name, drops)
    const audio = drops.audio - before.audio
    const data = drops.data - before.data
    const oversize = drops.oversize - before.oversize
    if (role === 'main') {
      this.stats.oversizePackets += oversize
      this.stats.droppedAudioPackets += audio
      this.stats.droppedDataPackets += data
    } else if (role === 'other')
      this.stats.otherDroppedPackets += drops.video - before.video + audio + data + oversize
  }

  /** Adds a PES packet that none of its renditions gets. */
  drop(roles: readonly DropRole[], reason: 'damagedPackets' | 'oversizePackets'): void {
    if (roles.includes('main')) this.stats[reason]++
    if (roles.includes('other')) this.stats.otherDroppedPackets++
  }
}
