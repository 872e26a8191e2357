/**
 * What the ingest doctor says, in words for whoever runs the encoder: what is wrong, and what to set.
 *
 * @module
 */
import type { Warning } from '../contract/report.ts'

/** Numbers that a sentence lists. */
const MOST_LISTED = 16

export function noPat(): Warning {
  return {
    code: 'NO_PAT',
    message:
      'no PAT for 3 s, so that nothing is known of what arrives: the encoder must send MPEG-TS (ffmpeg: -f mpegts)',
  }
}

export function noPmt(programNumbers: readonly number[]): Warning {
  return {
    code: 'NO_PMT',
    message: `the PAT lists ${programs(programNumbers)}, but for 3 s no map (PMT) came that can be read: let the encoder send the PMT at least once a second, or leave programs it does not send out of the PAT`,
  }
}

export function programNotFound(wanted: number, programNumbers: readonly number[]): Warning {
  return {
    code: 'PROGRAM_NOT_FOUND',
    message: `program ${wanted} is to be carried, but the encoder sends ${programs(programNumbers)}: correct program= in the stream key, or TS_PROGRAM`,
  }
}

export function noMedia(): Warning {
  return {
    code: 'NO_MEDIA',
    message:
      'connected, but no picture and no sound for 5 s: start or resume the encoder, and check its sources',
  }
}

export function psiTooRare(intervalSec: number): Warning {
  return {
    code: 'PSI_TOO_RARE',
    message: `PAT and PMT come only every ${seconds(intervalSec)}, and until they do nothing can be played of an encoder that connects: set their interval to 0.1 to 0.5 s (ffmpeg: -pat_period 0.1)`,
  }
}

export function continuityErrors(packets: number, spanSec: number): Warning {
  return {
    code: 'CONTINUITY_ERRORS',
    message: `continuity counters jumped ${times(packets, spanSec)}, though the connection lost nothing: packets are lost before they reach SRT; check the network (UDP multicast, capture card) or the file between encoder and SRT sender`,
  }
}

export function transportErrors(packets: number, spanSec: number): Warning {
  return {
    code: 'TRANSPORT_ERRORS',
    message: `packets say of themselves that they are damaged (transport error indicator), ${times(packets, spanSec)}, and are left out: check the reception (satellite, antenna, cable) in front of the encoder or gateway`,
  }
}

export function scrambled(packets: number, spanSec: number): Warning {
  return {
    code: 'SCRAMBLED',
    message: `packets are scrambled, ${times(packets, spanSec)}, and cannot be played: switch conditional access (BISS, CAS) off in the encoder, or descramble before SRT; SRT's own encryption (passphrase) is the way to keep the stream secret`,
  }
}

/** @param leadSec  by which the sound begins before the pictures; negative: after them */
export function soundStartsApart(leadSec: number): Warning {
  const order = leadSec > 0 ? 'before' : 'after'
  return {
    code: 'AV_SKEW',
    message: `the sound begins ${seconds(Math.abs(leadSec))} ${order} the pictures: start both together, and take the delay out of the encoder (ffmpeg: -itsoffset)`,
  }
}

/** @param leadSec  of the timestamps of the sound; negative: they are behind */
export function soundApart(leadSec: number): Warning {
  const order = leadSec > 0 ? 'ahead of' : 'behind'
  return {
    code: 'AV_SKEW',
    message: `the timestamps of the sound are ${seconds(Math.abs(leadSec))} ${order} those of the pictures that arrive with it: set the audio delay of the encoder to 0, and let sound and picture come from one device`,
  }
}

/** @param leadSec  by which the sound has run ahead; negative: fallen behind */
export function soundDrifts(leadSec: number): Warning {
  const order = leadSec > 0 ? 'run ahead' : 'fallen behind'
  return {
    code: 'AV_DRIFT',
    message: `the sound has ${order} of the pictures by ${seconds(Math.abs(leadSec))} since the encoder connected: they are captured by two clocks; lock both to one (genlock, word clock), or let the encoder resample the sound (ffmpeg: -af aresample=async=1)`,
  }
}

export function ptsGaps(gaps: number, missingSec: number, spanSec: number): Warning {
  return {
    code: 'PTS_GAPS',
    message: `pictures are missing, ${seconds(missingSec)} in ${gaps} ${gaps === 1 ? 'gap' : 'gaps'} in the last ${spanSec} s: the encoder drops what it cannot keep up with, or its source does; choose a faster preset or a smaller picture, and check the capture`,
  }
}

export function dtsRepeated(units: number, spanSec: number): Warning {
  return {
    code: 'DTS_REPEATED',
    message: `decoding times stand still or go back, ${times(units, spanSec)}, and players drop such pictures or sound: let the encoder make its timestamps anew (ffmpeg: -fps_mode cfr), or update it`,
  }
}

export function ptsBeforeDts(units: number, spanSec: number): Warning {
  return {
    code: 'PTS_BEFORE_DTS',
    message: `pictures or sound are to be shown before they are decoded (PTS before DTS), ${times(units, spanSec)}: let the encoder make its timestamps anew instead of copying them, or switch B-frames off`,
  }
}

export function frameRateOdd(measured: number, announced: number): Warning {
  return {
    code: 'FRAME_RATE_ODD',
    message: `pictures come at ${round(measured)} a second, but the bitstream announces ${round(announced)}: set the frame rate of the encoder to that of its source, and a constant one (ffmpeg: -r, -fps_mode cfr)`,
  }
}

export function clockDrift(ppm: number): Warning {
  const speed = ppm > 0 ? 'fast' : 'slow'
  const perHourSec = Math.abs(ppm) * 3600e-6
  return {
    code: 'CLOCK_DRIFT',
    message: `the clock of the encoder runs ${Math.round(Math.abs(ppm))} ppm too ${speed}, ${seconds(perHourSec)} an hour: viewers fall behind, or run out of media; let the encoder take its time from the capture device or from NTP`,
  }
}

export function notRealTime(rate: number): Warning {
  const advice =
    rate > 1
      ? 'send it in real time (ffmpeg: -re before -i of a file or a generated source)'
      : 'the encoder does not keep up: choose a faster preset, a smaller picture or a lower frame rate'
  return {
    code: 'NOT_REAL_TIME',
    message: `${round(rate)} s of media arrive a second: ${advice}`,
  }
}

export function gopIrregular(shortSec: number, longSec: number): Warning {
  return {
    code: 'GOP_IRREGULAR',
    message: `key frames come ${seconds(shortSec)} to ${seconds(longSec)} apart, and segments are as uneven: set a fixed key frame interval of 2 s, and switch scene cut detection off (ffmpeg with libx264: -force_key_frames "expr:gte(t,n_forced*2)" -sc_threshold 0)`,
  }
}

export function openGop(): Warning {
  return {
    code: 'OPEN_GOP',
    message:
      'pictures that follow a key frame are shown before it and need the group of pictures before (open GOP): whoever joins there, or switches to it, sees them broken; switch open GOP off (x264, x265: open-gop=0)',
  }
}

export function intraRefresh(): Warning {
  return {
    code: 'INTRA_REFRESH',
    message:
      'pictures are refreshed piece by piece (intra refresh) instead of by key frames, and no player can start there: switch intra refresh off (x264: intra-refresh=0) and set a key frame interval of 2 s',
  }
}

function programs(numbers: readonly number[]): string {
  if (numbers.length === 0) return 'no program'
  const rest = numbers.length > MOST_LISTED ? ` and ${numbers.length - MOST_LISTED} more` : ''
  const listed = numbers.slice(0, MOST_LISTED).join(', ')
  return `${numbers.length === 1 ? 'program' : 'programs'} ${listed}${rest}`
}

function times(count: number, spanSec: number): string {
  return `${count} in the last ${spanSec} s`
}

function seconds(value: number): string {
  return `${round(value)} s`
}

/** Two digits that count, and all before the point. */
function round(value: number): number {
  return value >= 100 ? Math.round(value) : Number(value.toPrecision(value >= 10 ? 3 : 2))
}
