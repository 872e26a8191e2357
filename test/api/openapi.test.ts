/**
 * The OpenAPI document: valid, complete, the same as docs/api-reference.md.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import Fastify from 'fastify'
import t from 'tap'
import { COMPONENTS } from '../../src/api/records.ts'
import { wireSchema } from '../../src/api/wire-names.ts'
import { api } from '../../src/api/calls/calls.ts'
import { openApiDocument } from '../../src/api/calls/openapi.ts'
import { REFUSALS } from '../../src/errors.ts'
import { checkDescribed } from '../support/api-description.ts'
import { call, json, MemoryService, startApp } from '../http/memory-service.ts'

const DOCS = new URL('../../docs/api-reference.md', import.meta.url)

t.test('/api/openapi.json needs no signature, and is a valid OpenAPI 3.1 document', async (t) => {
  const app = await startApp(t)
  const reply = await call(app, 'GET', '/api/openapi.json')
  t.match(reply, {
    status: 200,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'access-control-allow-origin': '*',
    },
  })
  const etag = String(reply.headers['etag'])
  const known = await call(app, 'GET', '/api/openapi.json', { headers: { 'if-none-match': etag } })
  t.match(known, { status: 304, headers: { etag }, body: { length: 0 } })
  const validator = new Validator()
  const { valid, errors } = await validator.validate(json(reply))
  t.same(errors, undefined)
  t.equal(valid, true)
  t.equal(validator.version, '3.1')
  t.same(json(reply), JSON.parse(JSON.stringify(openApiDocument())))
})

t.test('the document has each route of the API, and no other', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true })
  const routes: string[] = []
  app.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) routes.push(`${each} ${url}`)
  })
  const control = new MemoryService()
  await app.register(api, {
    prefix: '/api',
    control,
    readHmacSecrets: () => [],
    maxAgeSec: 0,
    clock: { wallMs: () => 0, nowUs: () => 0 },
  })
  const { paths } = openApiDocument() as {
    paths: Record<string, Record<string, { security?: object[] }>>
  }
  const signed = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, { security }]) => security?.some((each) => 'signature' in each))
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  )
  t.same(signed.toSorted(), routes.toSorted())
})

t.test('the check of answers finds what the document does not describe', async (t) => {
  const failure = { success: false, error: 'no', code: 'STREAM_NOT_FOUND' }
  const answer = (status: number, body: object, path = '/api/status') => ({
    ...{ method: 'POST', path, status, contentType: 'application/json' },
    body: Buffer.from(JSON.stringify(body)),
  })
  checkDescribed(answer(404, failure))
  const wrong: [ReturnType<typeof answer>, RegExp][] = [
    [answer(418, failure), /^status not in/],
    [answer(200, failure), /must NOT have additional|must have required/],
    [answer(404, { ...failure, code: 'FILE_NOT_FOUND' }), /must be equal to one of/],
    [answer(404, { ...failure, detail: 1 }), /must NOT have additional properties/],
    [answer(200, {}, '/api/unknown'), /^not in/],
    [{ ...answer(404, failure), contentType: 'text/html' }, /^content type not in/],
  ]
  for (const [each, message] of wrong) t.throws(() => checkDescribed(each), { message })
})

t.test('docs/api-reference.md has the tables of fields that the schemas generate', async (t) => {
  let page = readFileSync(DOCS, 'utf8')
  for (const [name, table] of Object.entries(tables())) {
    const pattern = new RegExp(`(?<=<!-- ${name}: [^>]* -->\n)[^]*?(?=<!-- ${name} end -->)`)
    t.match(page, pattern, `${name} has its place`)
    if (process.env['UPDATE_DOCS'] === '1') page = page.replace(pattern, () => table)
    else t.equal(pattern.exec(page)?.[0], table, '`npm run docs` writes the table')
  }
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(DOCS, page)
})

interface Field {
  readonly title?: string
  readonly description?: string
  readonly items?: Field
  readonly properties?: Readonly<Record<string, Field>>
  readonly 'x-unit'?: string
  readonly 'x-libsrt'?: string
}

/** Tables of docs/api-reference.md by name. */
function tables(): Record<string, string> {
  const rows = (fields: object, prefix = ''): string[][] =>
    Object.entries(fields as Record<string, Field>).flatMap(([name, field]) => {
      const { title, description = '', items } = field
      const below = rows(items?.properties ?? {}, `${prefix}${name}[].`)
      const inside = title === undefined ? rows(field.properties ?? {}, `${prefix}${name}.`) : []
      return [[`\`${prefix}${name}\``, description], ...inside, ...below]
    })
  const refusals = Object.entries(REFUSALS).flatMap(([code, refusal]) =>
    'http' in refusal ? [[`\`${code}\``, String(refusal.http), refusal.message]] : [],
  )
  const fieldsOf = (title: keyof typeof COMPONENTS) =>
    wireSchema(COMPONENTS[title]).properties as Record<string, Field>
  const publisher = Object.entries(fieldsOf('Publisher')).flatMap(([name, field]) => {
    const below = Object.entries(field.items?.properties ?? {})
    return [
      [name, field] as const,
      ...below.map(([key, each]) => [`${name}[].${key}`, each] as const),
    ]
  })
  return {
    started: markdown(['field', 'meaning'], rows(fieldsOf('StartedStream'))),
    record: markdown(['field', 'meaning'], rows(fieldsOf('StreamRecord'))),
    service: markdown(['field of `service`', 'meaning'], rows(fieldsOf('ServiceLoad'))),
    refusals: markdown(['`code`', 'status', 'message'], refusals),
    publisher: markdown(
      ['field', 'unit', 'libsrt', 'meaning'],
      publisher.map(([name, field]) => {
        const { 'x-unit': unit = '', 'x-libsrt': libsrt = '', description = '' } = field
        return [`\`${name}\``, unit, libsrt === '' ? '' : `\`${libsrt}\``, description]
      }),
    ),
  }
}

function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |\n`).join('')
}
