/**
 * Answers of the service against its OpenAPI document: status, content type and every field, in both directions.
 *
 * @module
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { openApiDocument } from '../../src/api/calls/openapi.ts'

export interface Answer {
  readonly method: string
  /** Path with or without a query. */
  readonly path: string
  readonly status: number
  readonly contentType: string | undefined
  readonly body: Buffer
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

interface Operation {
  readonly responses: Readonly<Record<number, { readonly content?: Record<string, object> }>>
}

/** Paths of the service; tests mount playback elsewhere, too. */
const OURS = /^\/(t\/[^/]+\/)?(metrics$|(api|health|video|watch)\/(?!assets\/))/

const { paths } = openApiDocument() as Document
const routes = Object.keys(paths).map((route) => ({
  route,
  pattern: new RegExp(`^${route.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
}))

const ajv = new Ajv2020({ strict: false })
addFormats.default(ajv)
ajv.addSchema(JSON.parse(JSON.stringify(openApiDocument(), closed)), 'api', false)
const validators = new Map<string, ValidateFunction>()

/** @throws {Error} if the document does not describe the answer */
export function checkDescribed(answer: Answer): void {
  const { method, path, status, contentType, body } = answer
  if (!OURS.test(path)) return
  const shown = `${method} ${path.slice(0, 100)}: ${status} ${contentType} ${body.toString('utf8', 0, 300)}`
  const [plainPath = ''] = path.split('?')
  const route = routes.find(({ pattern }) => pattern.test(plainPath))?.route
  const key = method === 'HEAD' ? 'get' : method.toLowerCase()
  const operation = route === undefined ? undefined : paths[route]![key]
  if (route === undefined || operation === undefined) {
    if (status === 404 || status === 400) return
    throw new Error(`not in the OpenAPI document: ${shown}`)
  }
  const response = operation.responses[status]
  if (response === undefined) throw new Error(`status not in the OpenAPI document: ${shown}`)
  if (body.length === 0) return
  const type = contentType?.split(';')[0] ?? ''
  if (response.content?.[type] === undefined) {
    throw new Error(`content type not in the OpenAPI document: ${shown}`)
  }
  if (type !== 'application/json') return
  const pointer = ['paths', route, key, 'responses', String(status), 'content', type, 'schema']
  const validate = validatorOf(`api#/${pointer.map(escaped).join('/')}`)
  if (!validate(JSON.parse(body.toString()))) {
    throw new Error(`${ajv.errorsText(validate.errors)}: ${shown}`)
  }
}

function validatorOf($ref: string): ValidateFunction {
  const validate = validators.get($ref) ?? ajv.compile({ $ref })
  validators.set($ref, validate)
  return validate
}

/** JSON pointer token in a URI fragment (RFC 6901 section 6). */
function escaped(token: string): string {
  return encodeURIComponent(token.replaceAll('~', '~0').replaceAll('/', '~1'))
}

/** Forbids fields that the document does not name; clients have to accept them, tests do not. */
function closed(_key: string, value: unknown): unknown {
  const isObject = typeof value === 'object' && value !== null && 'type' in value
  return isObject && value.type === 'object' && 'properties' in value
    ? { ...value, additionalProperties: false }
    : value
}
