/**
 * Operations of the OpenAPI document: parameters, bodies, and the responses of refusals.
 *
 * @module
 */
import { MillraceError, REFUSALS, type ErrorCode } from '../../errors.ts'

/** Refusals on any path, by HTTP status; Node's HTTP parser detects some of them. */
export const ANY_PATH: readonly [status: number, code: ErrorCode][] = [
  [400, 'REQUEST_MALFORMED'],
  [408, 'REQUEST_MALFORMED'],
  [431, 'REQUEST_MALFORMED'],
  [400, 'HTTPS_REQUIRED'],
  [500, 'INTERNAL'],
  [503, 'TOO_MANY_HTTP_CONNECTIONS'],
  [503, 'ORIGIN_UNREACHABLE'],
]

export function operation(
  operationId: string,
  summary: string,
  responses: Readonly<Record<number, object>>,
  refusals: readonly ErrorCode[] = [],
): object {
  return { operationId, summary, security: [], responses: { ...refused(refusals), ...responses } }
}

/** Responses of refusals, by HTTP status. */
export function refused(codes: readonly ErrorCode[]): Record<number, object> {
  const rows = [
    ...codes.map((code) => [new MillraceError(code).httpStatus, code] as const),
    ...ANY_PATH,
  ]
  const statuses = [...new Set(rows.map(([status]) => status))].toSorted((a, b) => a - b)
  const responses = statuses.map((status) => {
    const here = rows.filter(([each]) => each === status).map(([, code]) => code)
    const failure = { success: { const: false }, error: { type: 'string' }, code: { enum: here } }
    const hint = here.some((code) => 'hint' in REFUSALS[code]) ? { hint: { type: 'string' } } : {}
    const description = here.map((code) => `\`${code}\`: ${REFUSALS[code].message}`).join('\n\n')
    return [status, { description, content: json(object(failure, hint)) }]
  })
  return Object.fromEntries(responses) as Record<number, object>
}

export function parameter(place: 'path' | 'query', name: string, schema: object): object {
  return { name, in: place, ...(place === 'path' && { required: true }), schema }
}

export function success(data: object, optional: object = {}): object {
  return object({ success: { const: true }, data }, optional)
}

/** @param optional  further properties, which may be absent */
export function object(properties: object, optional: object = {}): object {
  const required = Object.keys(properties)
  return { type: 'object', required, properties: { ...properties, ...optional } }
}

export function json(schema: object): object {
  return { 'application/json': withReferences({ schema }) }
}

/** Copy as JSON, with references in place of the titled schemas below the root. */
export function withReferences(root: object): unknown {
  const copy = JSON.stringify(root, (key, value: unknown) => {
    const isTitled = key !== '' && typeof value === 'object' && value !== null && 'title' in value
    return isTitled ? { $ref: `#/components/schemas/${String(value.title)}` } : value
  })
  return JSON.parse(copy)
}
