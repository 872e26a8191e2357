/**
 * What axe-core finds on a page.
 *
 * @module
 */
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

/** Script for `addInitScript`, which comes in before the content security policy holds. */
export const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string }[]
}

/** Serious and critical findings, in light and in dark. */
export async function findFaults(page: Page): Promise<string[]> {
  const faults: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const { violations } = await page.evaluate<{ violations: Finding[] }>('axe.run(document)')
    const grave = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))
    faults.push(
      ...grave.map(
        ({ id, nodes }) => `${colorScheme} ${id}: ${nodes.map(({ html }) => html).join()}`,
      ),
    )
  }
  return faults
}
