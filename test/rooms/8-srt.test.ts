import { importTests } from '../support/import-tests.ts'

await importTests('srt', 'ingest', 'cli')
