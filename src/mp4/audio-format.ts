/**
 * Format of an audio track, as its frame headers tell.
 *
 * @module
 */
import type { Ac3Syncframe } from '../codec/ac3.ts'
import type { AudioParameters } from '../codec/audio-frame.ts'
import type { AudioSpecificConfig } from '../codec/audio-specific-config.ts'
import type { OpusChannels } from '../codec/opus.ts'

interface BaseFormat {
  /** Parameters of the decoded audio. */
  readonly parameters: AudioParameters
  /** Timescale of the track, in hertz: the sample rate in which frames are counted. HE-AAC has that of its core. */
  readonly timescale: number
}

export interface AacFormat extends BaseFormat {
  readonly codec: 'aac'
  readonly config: AudioSpecificConfig
}

export interface MpegAudioFormat extends BaseFormat {
  readonly codec: 'mp3' | 'mp2'
}

export interface Ac3Format extends BaseFormat {
  readonly codec: 'ac3'
  readonly syncframe: Ac3Syncframe
}

/** Independent substream of E-AC-3 with its dependent ones. */
export interface Eac3Substream {
  readonly syncframe: Ac3Syncframe
  /** Number of dependent substreams. */
  readonly dependents: number
  /** `chanmap` of the dependent substreams, joined. */
  readonly channelMap: number
}

export interface Eac3Format extends BaseFormat {
  readonly codec: 'eac3'
  /** Data rate of the first sample, in kbit/s. */
  readonly dataRate: number
  readonly substreams: readonly Eac3Substream[]
}

export interface OpusFormat extends BaseFormat {
  readonly codec: 'opus'
  /** Samples of 48 kHz that the decoder drops at the start. */
  readonly preSkip: number
  /** Sample rate of the source in hertz; 0 if unknown. */
  readonly inputSampleRate: number
  /** ChannelMappingTable (RFC 7845 5.1.1); undefined for one or two channels in their usual order. */
  readonly mapping?: OpusMapping
}

interface OpusMapping extends OpusChannels {
  /** Channel mapping family. */
  readonly family: number
}

export type AudioFormat = AacFormat | MpegAudioFormat | Ac3Format | Eac3Format | OpusFormat
