/**
 * Calls of the dashboard: those of the API that change streams.
 *
 * @module
 */
import { TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox'
import type { FastifyPluginAsync } from 'fastify'
import type { StreamControl } from '../api/control.ts'
import { clientAddress } from '../http/client-address.ts'
import { parseJson, readBodies } from '../http/body-reader.ts'
import { bodyOf } from '../api/calls/bodies.ts'
import { callsOf } from '../api/calls/calls.ts'
import { audit } from '../api/calls/audit.ts'
import type { Logger } from '../logger.ts'
import { qrCodeOf } from './qr-code.ts'

const CALLS = ['start-stream', 'stop-stream', 'revoke-key', 'kick', 'switch-source'] as const

export interface StreamCallsOptions {
  readonly control: StreamControl
  /** Receives the audit log; undefined: there is none. */
  readonly auditLogger?: Logger | undefined
}

/** Fastify plugin: `POST /streams/{call}` with the body and the response of the API. */
export const streams: FastifyPluginAsync<StreamCallsOptions> = async (app, options) => {
  const { control, auditLogger } = options
  readBodies(app, parseJson)
  const call = callsOf(control)
  app.setValidatorCompiler(TypeBoxValidatorCompiler)
  for (const name of CALLS) {
    app.post<{ Body: Record<string, unknown> }>(
      `/streams/${name}`,
      bodyOf(name),
      async (request) => {
        const { body } = request
        const audited = { name, body, key: 'admin', client: clientAddress(request) }
        const data = await audit(auditLogger, audited, () => call(name, body))
        return { success: true, data: withQrCodes(data) }
      },
    )
  }
}

function withQrCodes(data: unknown): object {
  const { srt_url: url, backup_srt_url: backup } = data as Record<string, string | undefined>
  return {
    ...(data as object),
    ...(url !== undefined && { qr_code: qrCodeOf(url) }),
    ...(backup !== undefined && { backup_qr_code: qrCodeOf(backup) }),
  }
}
