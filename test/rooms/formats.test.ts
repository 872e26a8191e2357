import { importTests } from '../support/import-tests.ts'

await importTests(
  'auth',
  'binary',
  'codec',
  'config',
  'diagnosis',
  'mp4',
  'mpegts',
  'pace',
  'support',
  'timing',
)
