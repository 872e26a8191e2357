/**
 * Figures in messages, in few characters: significant digits only, large numbers in compact notation.
 *
 * @module
 */
import { lacksChannels, type Track } from '../mpegts/track.ts'

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })

const MAX_PROGRAMS = 3

const MAX_NAME_CHARACTERS = 40

/** Formats 2 significant digits, 3 from 10 on, integers from 100 on, compact from 1e6 on: `0.36`, `12.5`, `1.23M`. */
export function figure(value: number): string {
  if (Math.abs(value) >= 1e6) return COMPACT.format(value)
  if (Math.abs(value) >= 100) return String(Math.round(value))
  return String(Number(value.toPrecision(Math.abs(value) >= 10 ? 3 : 2)))
}

/** @param share  0 to 1; below 0.01 the percentage has two decimals */
export function percent(share: number): string {
  return `${Number((share * 100).toFixed(share < 0.01 ? 2 : 0))} %`
}

/** Formats a bit rate in Mbit/s, without the unit. */
export function megabits(bitsPerSec: number): string {
  return COMPACT.format(Number((bitsPerSec / 1e6).toPrecision(3)))
}

/** Formats a size in whole MiB, rounded up, without the unit. */
export function mebibytes(bytes: number): string {
  return String(Math.ceil(bytes / 1024 ** 2))
}

/** Cuts a name that is too long, which is told by its end: `…era.example.org:9000`. */
export function shortened(name: string): string {
  return name.length > MAX_NAME_CHARACTERS ? `…${name.slice(1 - MAX_NAME_CHARACTERS)}` : name
}

/** Formats a list of program numbers: `programs 3, 7, 8 and 17 more`. */
export function programs(numbers: readonly number[]): string {
  if (numbers.length === 0) return 'no program'
  const listed = numbers.slice(0, MAX_PROGRAMS).join(', ')
  return `${numbers.length === 1 ? 'program' : 'programs'} ${listed}${more(numbers.length - MAX_PROGRAMS)}`
}

/** Formats a list of tracks: `PID 258 (eac3) and 2 more`. */
export function tracks(all: readonly Track[]): string {
  const named = all.slice(0, 1).map((track) => {
    const { pid, label, codec, kind } = track
    const name = label ?? (codec === 'unknown' ? kind : codec)
    return `PID ${pid} (${name}${lacksChannels(track) ? ' without channel configuration' : ''})`
  })
  return named.join(', ') + more(all.length - named.length)
}

function more(count: number): string {
  return count > 0 ? ` and ${count} more` : ''
}
