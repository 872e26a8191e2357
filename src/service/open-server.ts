/**
 * Start of servers: their options, their ports, and the end of one that cannot start.
 *
 * @module
 */
import type { FastifyInstance } from 'fastify'
import type { GivenSettings } from '../config/schema.ts'
import type { Logger } from '../logger.ts'
import { explainAddress } from './bind-error.ts'

export interface ProgramOptions extends GivenSettings {
  /** Receives log lines; default: standard output, by `logFormat` and `logLevel`. */
  readonly logger?: Logger
}

/** Options of `createServer`: the settings of docs/settings.md, of which `hmacSecret` and `jwtSecret` are required. */
export interface ServerOptions extends Omit<ProgramOptions, 'http'> {
  /**
   * Port of playback and API; false: none, and `Server.handler` takes their requests from a server of the application, at
   * `public.url`.
   */
  readonly http?: ProgramOptions['http'] | false
}

interface Server {
  listen(): Promise<void>
  close(): Promise<void>
}

/** Opens the ports of a server. If one cannot be opened, nothing is left running. */
export async function openServer<Opened extends Server>(server: Opened): Promise<Opened> {
  try {
    await server.listen()
  } catch (error) {
    await server.close()
    throw error
  }
  return server
}

export interface HttpAddress {
  /** Name of the port setting, without `_PORT`. */
  readonly setting: 'API' | 'HTTP' | 'METRICS'
  readonly host: string
  readonly port: number
  /** Name of the host setting; default: that of `setting`. */
  readonly hostSetting?: string
}

/** @throws {MillraceError} see `explainAddress` */
export async function listenAt(
  app: FastifyInstance,
  { setting, host, port, hostSetting }: HttpAddress,
): Promise<void> {
  await app
    // For `localhost` Fastify opens a second server, which the guard does not see.
    .listen({ host: host === 'localhost' ? '127.0.0.1' : host, port })
    .catch(explainAddress(setting, host, hostSetting))
}

/** TCP port of an application; undefined before it listens, and for one on a Unix socket. */
export function portOf(app: FastifyInstance): number | undefined {
  const address = app.addresses()[0] as ReturnType<FastifyInstance['server']['address']> | undefined
  return typeof address === 'object' ? address?.port : undefined
}
