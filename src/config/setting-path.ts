/**
 * Values of settings by their paths in nested options.
 *
 * @module
 */

export function readSetting(options: object, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (value as Record<string, unknown> | undefined)?.[key],
    options,
  )
}

export function writeSetting(
  options: Record<string, unknown>,
  path: readonly string[],
  value: unknown,
): void {
  const [key, ...rest] = path
  if (key === undefined) return
  if (rest.length === 0) options[key] = value
  else writeSetting((options[key] ??= {}) as Record<string, unknown>, rest, value)
}
