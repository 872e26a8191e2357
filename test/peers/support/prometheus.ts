/**
 * Prometheus that scrapes one target each second, and its queries.
 *
 * @module
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../support/free-port.ts'
import { start } from '../../support/process.ts'
import { until } from '../../support/until.ts'

export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [timeSec: number, value: string]
}

export interface Prometheus {
  /** Result of an instant query; rejects with the error of Prometheus. */
  query(expression: string): Promise<Sample[]>
}

/** Starts Prometheus, which ends with the test. */
export async function startPrometheus(
  t: Test,
  { port: targetPort, token }: { readonly port: number; readonly token?: string },
): Promise<Prometheus> {
  const folder = t.testdir()
  const config = join(folder, 'prometheus.yml')
  const data = join(folder, 'data')
  mkdirSync(data)
  const authorization = token === undefined ? {} : { authorization: { credentials: token } }
  const target = { static_configs: [{ targets: [`127.0.0.1:${targetPort}`] }] }
  // JSON is YAML.
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: '1s', scrape_timeout: '1s' },
      scrape_configs: [{ job_name: 'millrace', ...authorization, ...target }],
    }),
  )
  const address = `127.0.0.1:${await freePort()}`
  const { output } = start(t, 'prometheus', [
    `--config.file=${config}`,
    `--storage.tsdb.path=${data}`,
    `--web.listen-address=${address}`,
  ])
  const query = async (expression: string): Promise<Sample[]> => {
    const parameters = new URLSearchParams({ query: expression })
    const reply = await fetch(`http://${address}/api/v1/query?${parameters.toString()}`)
    const { error, data: result } = (await reply.json()) as {
      readonly error?: string
      readonly data?: { readonly result: Sample[] }
    }
    if (result === undefined) throw new Error(`${expression}: ${error}`)
    return result.result
  }
  const isUp = async () => (await query('up == 1').catch(() => [])).length === 1
  await until('a scrape', isUp).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${output()}`)
  })
  return { query }
}
