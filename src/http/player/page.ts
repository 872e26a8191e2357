/**
 * Markup of the player page. All paths are relative, so that the page works below a prefix of a reverse proxy.
 *
 * @module
 */

/** @param streamId  escaped here, although valid ids need no escaping */
export function playerPage(streamId: string): string {
  const id = escapeHtml(streamId)
  const path = escapeHtml(encodeURIComponent(streamId))
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${id} · Millrace</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="assets/player.css">
<link rel="modulepreload" href="assets/live-edge.js">
<link rel="modulepreload" href="assets/panel.js">
<script src="assets/hls.min.js" defer></script>
<script src="assets/player.js" type="module"></script>
</head>
<body data-playlist="../video/${path}/master.m3u8" data-state="${path}/state">
<header><h1>${id}</h1><button id="badge" type="button" hidden>Live</button></header>
<main>
<video playsinline muted></video>
<p id="notice" role="status">Looking for the stream …</p>
<button id="unmute" type="button" hidden>Unmute</button>
</main>
<footer hidden>
<label hidden>Quality <select id="quality"></select></label>
<label hidden>Language <select id="language"></select></label>
<details id="figures">
<summary>Playback figures</summary>
<dl>
<div><dt>Latency after reception</dt><dd id="latency"></dd></div>
<div><dt>Buffer</dt><dd id="buffer"></dd></div>
<div><dt>Bitrate</dt><dd id="bitrate"></dd></div>
<div><dt>Dropped frames</dt><dd id="dropped"></dd></div>
</dl>
</details>
</footer>
</body>
</html>
`
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
