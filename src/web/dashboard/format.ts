/**
 * Figures as text.
 *
 * @module
 */
import type { EncoderFigures, StreamRow } from './wire.ts'

/** Text for a figure that there is not. */
export const NONE = '–'

/** `STREAMING` before it is live. */
export const STATES = {
  LIVE: 'Live',
  INTERRUPTED: 'Interrupted',
  STREAMING: 'Connected',
  READY: 'Ready',
  STOPPED: 'Stopped',
} as const satisfies Readonly<Record<StreamRow['status'] | 'LIVE', string>>

export function stateOf({ status, live }: StreamRow): string {
  return STATES[live ? 'LIVE' : status]
}

const ON_AIR = { main: '', backup: 'on backup', slate: 'on slate' } as const

/** What is on air instead of the main encoder; empty for nothing. */
export function sourceOf({ onAir = 'main' }: StreamRow): string {
  return ON_AIR[onAir]
}

/** Whether viewers get media, be it the slate. */
export function isPlaying({ live, onAir }: StreamRow): boolean {
  return live || onAir === 'slate'
}

export function bitrate(bitsPerSec: number | undefined): string {
  if (bitsPerSec === undefined) return NONE
  const mbit = bitsPerSec / 1e6
  return mbit < 1 ? `${Math.round(bitsPerSec / 1000)} kbit/s` : `${mbit.toFixed(1)} Mbit/s`
}

export function milliseconds(ms: number | undefined): string {
  return ms === undefined ? NONE : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

export function memory(bytes: number): string {
  const mib = bytes / 2 ** 20
  return mib < 1024 ? `${Math.round(mib)} MiB` : `${(mib / 1024).toFixed(1)} GiB`
}

export function count(number: number | undefined): string {
  return number === undefined ? NONE : number.toLocaleString('en')
}

/** Packets that were not received, with their share of those that were sent. */
export function packets(
  number: number | undefined,
  { packetsReceived = 0 }: EncoderFigures,
): string {
  return withShare(number, packetsReceived + (number ?? 0))
}

/** A number with its share of all, for example `12 (0.3 %)`; without it where the sum is not known. */
export function withShare(number: number | undefined, all: number | undefined): string {
  if (!number || !all) return count(number)
  const percent = (100 * number) / all
  return `${count(number)} (${percent < 0.1 ? '<0.1' : percent.toFixed(1)} %)`
}

export function duration(ms: number): string {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 1) return `${Math.max(0, Math.floor(ms / 1000))} s`
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`
}

const TIME_FORMAT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' })

/** A time with its zone, the only format of times, for example `26 Nov 2026, 14:05:09 CET`. */
export function time(ms: number): string {
  return TIME_FORMAT.format(ms)
}
