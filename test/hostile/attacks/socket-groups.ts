/**
 * Floods of handshakes of socket groups: groups of strangers, lines that a key holder has join and never uses, and GROUP
 * extensions of wrong sizes.
 *
 * @module
 */
import { randomBytes, randomInt } from 'node:crypto'
import {
  encodeBlock,
  encodeGroupExtension,
  ExtensionType,
  GROUP_ID_BIT,
} from '../../../src/srt/wire/extension.ts'
import { callApi } from '../../support/service.ts'
import type { Target } from '../target.ts'
import { floodConclusions } from './conclusion-flood.ts'
import type { flood, Flood } from './handshakes.ts'

export type GroupAttack = 'strangers' | 'unused-lines' | 'wrong-sizes'

/** Number of groups that the key holder's lines belong to, each as often as the others. */
const OWN_GROUPS = 3
const MAX_WORDS = 300

/** @param options  default: those of `floodConclusions` */
export async function floodGroups(
  target: Target,
  signal: AbortSignal,
  what: GroupAttack,
  options: Partial<Flood> = {},
): ReturnType<typeof flood> {
  if (what === 'strangers') {
    return floodConclusions(target, signal, { group: () => member(randomInt(2 ** 30)), ...options })
  }
  const url = `http://${target.host}:${target.httpPort}`
  const { body } = await callApi(url, 'start-stream', { stream_id: 'crowded' }, target.hmacSecret)
  return floodConclusions(target, signal, {
    streamId: () => body.data['stream_key'] as string,
    group: () =>
      what === 'unused-lines'
        ? member(randomInt(OWN_GROUPS))
        : encodeBlock(ExtensionType.GROUP, randomBytes(4 * randomInt(MAX_WORDS))),
    ...options,
  })
}

function member(group: number): Buffer {
  return encodeGroupExtension({ groupId: GROUP_ID_BIT | group, type: 1 + (group % 2), weight: 1 })
}
