import { importTests } from '../support/import-tests.ts'

await importTests('e2e')
