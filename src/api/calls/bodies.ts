/**
 * Bodies of the calls on the wire, and their check by Fastify.
 *
 * @module
 */
import type { RouteShorthandOptions } from 'fastify'
import type { TObject } from 'typebox'
import { ENDPOINTS, type EndpointName } from '../endpoints.ts'
import { formatBodyError } from '../requests.ts'
import { wireSchema } from '../wire-names.ts'

/** Schema of each body. */
export const BODIES = Object.fromEntries(
  Object.entries(ENDPOINTS).map(([name, { body }]) => [name, wireSchema(body)]),
) as Record<EndpointName, TObject>

/** @returns options of a route whose body is that of a call */
export function bodyOf(
  name: EndpointName,
): Pick<RouteShorthandOptions, 'schema' | 'schemaErrorFormatter'> {
  const body = BODIES[name]
  return {
    schema: { body },
    schemaErrorFormatter: (errors) => formatBodyError(body, errors),
  }
}
