/**
 * Style sheet of the player page.
 *
 * @module
 */

export const playerStyle = `
:root { color-scheme: dark; --line: #2a2d34; --text: #e8eaee; --quiet: #9aa1ad; --live: #e5484d; }
* { box-sizing: border-box; margin: 0; }
body { min-height: 100vh; display: flex; flex-direction: column; background: #0f1013; color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
header { display: flex; align-items: center; gap: .75rem; padding: .75rem 1rem; border-bottom: 1px solid var(--line); }
h1 { font-size: 1rem; font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
#badge { padding: .125rem .5rem; border: 0; border-radius: .25rem; background: var(--live); color: #fff;
  font: inherit; font-size: .75rem; font-weight: 600; text-transform: uppercase; letter-spacing: .05em; }
#badge.behind { background: var(--line); color: var(--text); cursor: pointer; }
main { flex: 1; position: relative; display: grid; place-items: center; padding: 1rem; }
video { width: 100%; max-width: 80rem; max-height: calc(100vh - 9rem); aspect-ratio: 16 / 9; border-radius: .5rem;
  background: #000; }
#notice { position: absolute; top: 50%; left: 50%; transform: translate(-50%, -50%); width: max-content;
  max-width: calc(100% - 4rem); padding: .5rem 1rem; border-radius: .5rem; background: rgb(15 16 19 / .85);
  color: var(--quiet); text-align: center; pointer-events: none; }
.playing #notice { top: 4rem; }
#unmute { position: absolute; top: 2rem; right: 2rem; padding: .5rem 1rem; border: 0; border-radius: .5rem;
  background: var(--text); color: #0f1013; font: inherit; font-weight: 600; cursor: pointer; }
footer { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: start; padding: .75rem 1rem;
  border-top: 1px solid var(--line); color: var(--quiet); font-size: .875rem; }
select { padding: .125rem .25rem; border: 1px solid var(--line); border-radius: .25rem; background: #0f1013;
  color: var(--text); font: inherit; }
summary { cursor: pointer; }
dl { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; padding-top: .5rem; }
dl div { display: flex; gap: .5rem; }
dd { min-width: 5em; color: var(--text); font-variant-numeric: tabular-nums; }
[hidden] { display: none !important; }
`
