/**
 * The table of settings in README.md, in Markdown.
 *
 * @module
 */
import { allowedValues, SETTINGS } from './settings.ts'

export function settingsTable(): string {
  const rows = SETTINGS.map((setting) => {
    const { env, schema } = setting
    const preset = schema.preset ?? String(schema.default ?? '(required)')
    return `| \`${env}\` | ${preset === '' ? '(none)' : preset} | ${allowedValues(setting)} | ${schema.description} |`
  })
  return ['| setting | default | allowed values | meaning |', '|---|---|---|---|', ...rows].join(
    '\n',
  )
}
