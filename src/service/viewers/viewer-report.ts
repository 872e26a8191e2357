/**
 * Viewers that an edge on another machine reports.
 *
 * @module
 */
import { Type } from 'typebox'
import { Check } from 'typebox/value'
import type { ViewerReport } from '../../edge/viewer-calls.ts'
import { MillraceError } from '../../errors.ts'

/** What limits the body limits the report. */
const Report = Type.Record(Type.String(), Type.Array(Type.Integer()))

/** @throws {MillraceError} `BODY_INVALID` */
export function parseViewerReport(body: unknown): ViewerReport {
  if (!Check(Report, body)) throw new MillraceError('BODY_INVALID')
  return body
}
