/**
 * The corpus: streams of encoders, muxers and networks, with the expected output.
 *
 * @module
 */
import { CHANGES } from './cases/changes.ts'
import { CODECS } from './cases/codecs.ts'
import { KEY_FRAMES } from './cases/key-frames.ts'
import { METADATA } from './cases/metadata.ts'
import { MUXERS } from './cases/muxers.ts'
import { NETWORK } from './cases/network.ts'
import { PARAMETER_SETS } from './cases/parameter-sets.ts'
import { TIME } from './cases/time.ts'
import { TRACKS } from './cases/tracks.ts'
import type { MediaCase } from './media-case.ts'

/** Cases by heading of docs/media-cases.md. */
export const CORPUS: Readonly<Record<string, readonly MediaCase[]>> = {
  Codecs: CODECS,
  'Several tracks': TRACKS,
  Metadata: METADATA,
  'Key frames': KEY_FRAMES,
  'Parameter sets': PARAMETER_SETS,
  'Packets and tables': MUXERS,
  Time: TIME,
  'Changes on the way': CHANGES,
  'Losses and damage': NETWORK,
}
