import { importTests } from '../support/import-tests.ts'

await importTests('http', 'admin', 'web')
