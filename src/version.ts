/**
 * Version of the package.
 *
 * @module
 */
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

// By its own name: wherever the compiled file lies.
export const { version: VERSION } = require('millrace/package.json') as { version: string }
