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
#badge { padding: 0 .5rem; border-radius: .25rem; background: var(--live); color: #fff; font-size: .75rem;
  font-weight: 600; text-transform: uppercase; letter-spacing: .05em; }
main { flex: 1; position: relative; display: grid; place-items: center; padding: 1rem; }
video { width: 100%; max-width: 80rem; max-height: calc(100vh - 6rem); aspect-ratio: 16 / 9; border-radius: .5rem;
  background: #000; }
#notice { position: absolute; top: 50%; left: 50%; transform: translate(-50%, -50%); width: max-content;
  max-width: calc(100% - 4rem); padding: .5rem 1rem; border-radius: .5rem; background: rgb(15 16 19 / .85);
  color: var(--quiet); text-align: center; pointer-events: none; }
.playing #notice { top: 4rem; }
#unmute { position: absolute; top: 2rem; right: 2rem; padding: .5rem 1rem; border: 0; border-radius: .5rem;
  background: var(--text); color: #0f1013; font: inherit; font-weight: 600; cursor: pointer; }
[hidden] { display: none !important; }
`
