/**
 * All tests of rooms in one process: to start one for each file and to load its modules takes longer than most tests. tap
 * starts processes in the order of their names, so the longest of them have the lowest numbers: none is left alone at the end.
 *
 * @module
 */
import { readdirSync } from 'node:fs'

export async function importTests(...rooms: string[]): Promise<void> {
  for (const room of rooms) {
    const folder = new URL(`../${room}/`, import.meta.url)
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    for (const file of files.filter((name) => name.endsWith('.test.ts')).toSorted())
      await import(new URL(file, folder).href)
  }
}
