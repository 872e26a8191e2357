/**
 * Tabs, as in the ARIA Authoring Practices Guide: the arrow keys choose a tab, and the Tab key reaches the chosen one alone.
 *
 * @module
 */
import { byId } from './dom.ts'

/** Connects the tabs of a list, and chooses the first one; call once. */
export function prepareTabs(list: Element): void {
  const tabs = [...list.querySelectorAll<HTMLElement>('[role=tab]')]
  const choose = (chosen: HTMLElement) => {
    for (const tab of tabs) {
      tab.ariaSelected = String(tab === chosen)
      tab.tabIndex = tab === chosen ? 0 : -1
      byId(tab.getAttribute('aria-controls')!).hidden = tab !== chosen
    }
  }
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener('click', () => choose(tab))
    tab.addEventListener('keydown', (event) => {
      // Those are for the browser: Alt and an arrow go back.
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return
      const next = nextOf(tabs, index, event.key)
      if (next === undefined) return
      event.preventDefault()
      choose(next)
      next.focus()
    })
  }
  choose(tabs[0]!)
}

/** Tab that a key chooses; undefined for other keys. */
function nextOf<Tab>(tabs: readonly Tab[], index: number, key: string): Tab | undefined {
  if (key === 'ArrowRight') return tabs[index + 1] ?? tabs[0]
  if (key === 'ArrowLeft') return tabs.at(index - 1)
  if (key === 'Home') return tabs[0]
  return key === 'End' ? tabs.at(-1) : undefined
}
