/**
 * How much of what only adds volume is run: little with every change, all of it with `npm run soak`.
 *
 * @module
 */

/** Whether this is `npm run soak`. */
export const IS_SOAK = process.env['SOAK'] === 'true'

/** First of the seeds, `SOAK_FROM` or 1, so that a soak can go on where the last one ended. */
export const FIRST_SEED = Number(process.env['SOAK_FROM'] ?? 1)

/** Number of rounds, or of seeds. */
export const rounds = (few: number, many: number): number => (IS_SOAK ? many : few)
