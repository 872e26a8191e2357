import { importTests } from '../support/import-tests.ts'

await importTests('api', 'client', 'egress', 'outbound', 'service', 'webhook')
