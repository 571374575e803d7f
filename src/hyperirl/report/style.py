"""How the page looks, and the little it does when it is touched."""

import base64
import hashlib

TINTS = 16  # Steps from white to a full color, on either side of zero.


def _tint(level: int) -> str:
    """White for 0, blue below it, orange above: light, for numbers on it are black."""
    end = (245, 164, 92) if level > 0 else (120, 176, 226)
    share = abs(level) / TINTS
    return "".join(f"{round(255 + (channel - 255) * share):02x}" for channel in end)


# Okabe and Ito's colors, which people with any color vision can tell apart; lighter
# ones on a dark page. Printing always uses the light page.
STYLE = """
:root{color-scheme:light dark;--page:#fff;--card:#f6f7f9;--ink:#1b1f24;--soft:#57606a;
--rule:#d5dae0;--grid:#e7eaee;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#b5548a;
--c4:#b07700;--c5:#3a8fc4;--c6:#1b1f24;--c7:#7a5bb5}
@media(prefers-color-scheme:dark){@media not print{:root{--page:#14171b;--card:#1d2126;
--ink:#e8eaed;--soft:#a5adb8;--rule:#3a4149;--grid:#2b3138;--c0:#56b4e9;--c1:#f28a3c;
--c2:#2fc79a;--c3:#e08fbc;--c4:#e6b23c;--c5:#9ad0f0;--c6:#e8eaed;--c7:#b79cf0}}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
header,main{max-width:1160px;margin:0 auto;padding:0 20px}
header{padding-top:36px}
h1,h2,.lead{font-family:Charter,"Bitstream Charter","Iowan Old Style",
"Palatino Linotype",Palatino,Georgia,serif}
h1{margin:0;font-size:2.1rem;line-height:1.2;font-weight:600;overflow-wrap:anywhere}
h2{margin:48px 0 16px;padding-bottom:6px;border-bottom:1px solid var(--rule);
font-size:1.45rem;font-weight:600}
.lead{margin:28px 0 12px;font-size:1.32rem;line-height:1.5;max-width:46em}
.distrust{max-width:60em;margin:0 0 20px;padding:2px 0 2px 16px;
border-left:3px solid var(--c4);font-size:.95rem}
.distrust ul{margin:4px 0 0;padding-left:18px}
h3{margin:0 0 4px;font-size:1rem}
header p{margin:4px 0 12px;color:var(--soft)}
nav{display:flex;flex-wrap:wrap;gap:4px 16px}
nav a{color:var(--c0);padding:4px 0}
.note,.range{color:var(--soft);font-size:.86rem;margin:4px 0}
.warning{margin:20px 0 0;padding:12px 14px 12px 34px;border:2px solid var(--c1);
border-radius:8px;background:var(--card);font-weight:600}
.cards{display:grid;gap:12px;margin-bottom:16px;
grid-template-columns:repeat(auto-fill,minmax(min(100%,270px),1fr))}
.card{background:var(--card);border:1px solid var(--rule);border-radius:8px;
padding:14px}
.card h3{font-weight:600;color:var(--soft);font-size:.9rem}
.value{margin:0;font-size:1.8rem;line-height:1.2;font-weight:650}
.card ul{list-style:none;margin:4px 0;padding:0;font-size:.9rem}
.charts{display:grid;gap:20px 24px;
grid-template-columns:repeat(auto-fill,minmax(min(100%,370px),1fr))}
.grid4{display:grid;gap:16px 20px;margin-bottom:20px;
grid-template-columns:repeat(auto-fill,minmax(min(100%,250px),1fr))}
.three{margin-bottom:32px;
grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr))}
.three .chart>svg{margin:4px 0 0}
.panel>b,.panel p{font-size:.9rem;margin:0}
.panel p{display:flex;justify-content:space-between;gap:8px;align-items:baseline}
.panel p>*{white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.panel p .range{flex:none;margin:0}
.small{display:grid;gap:14px 24px;
grid-template-columns:repeat(auto-fill,minmax(min(100%,240px),1fr))}
.maps,.visits{margin:0 0 32px}
.maps .grid4{margin:10px 0 8px}
svg.bar{max-width:560px;margin:0 auto}
.flat{fill:var(--card)}
.veil{fill:var(--page);opacity:.42}
.hatch{fill:url(#hatch)}
.hatching{stroke:var(--ink);stroke-width:.7;opacity:.55}
.defs{position:absolute;width:0;height:0}
.seen{fill:none;stroke:#fff;stroke-width:1.5;stroke-linecap:round;opacity:.9}
.seen.rim{stroke:#111;stroke-width:2.5;opacity:.55}
.mark{stroke:var(--ink);stroke-width:2;fill:none}
.pale{opacity:.4}
.film{display:block;width:100%;max-width:480px;height:auto;border:1px solid var(--rule);
border-radius:6px;background:#fff}
figure{margin:0;min-width:0;position:relative;break-inside:avoid}
figcaption{font-size:.86rem;color:var(--soft);margin-bottom:4px}
figcaption b{color:var(--ink);font-size:.95rem}
.chart{max-width:620px;display:flex;flex-direction:column}
.chart>svg{margin-top:auto}
svg{display:block;width:100%;height:auto}
svg text{font-size:12.5px;fill:var(--soft)}
svg text.name{fill:var(--ink)}
.end{text-anchor:end}.mid{text-anchor:middle}
.grid{stroke:var(--grid);fill:none}.axis,.tick{stroke:var(--soft);fill:none}
.limit{stroke:var(--ink);stroke-width:1.4;stroke-dasharray:1 3;stroke-linecap:round;
fill:none}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.line.thin{stroke-width:1.6}
.band{opacity:.18;stroke:none}
.dots{stroke:var(--page);stroke-width:.6;fill-opacity:.85}
.spread{stroke:var(--c0);stroke-width:6;opacity:.35;fill:none}
image{image-rendering:pixelated}
.gauge{max-width:280px;margin:4px 0}
.legend{display:flex;flex-wrap:wrap;gap:6px 10px;margin:4px 0 8px;font-size:.9rem}
.legend+.note{margin-bottom:14px}
.legend span,.legend button{display:inline-flex;align-items:center;gap:6px}
button{font:inherit;color:inherit;background:var(--card);border:1px solid var(--rule);
border-radius:6px;padding:6px 10px;min-height:36px;cursor:pointer;text-align:left}
button[aria-pressed=false]{opacity:.45;text-decoration:line-through}
.key{width:14px;flex:none}.key.long{width:34px}
.wide{overflow-x:auto;-webkit-overflow-scrolling:touch}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:5px 10px;text-align:left;border-bottom:1px solid var(--rule);
vertical-align:top}
th{font-weight:600}
.compare td,.compare tr:first-child th:not(:first-child){text-align:right}
.compare td,.compare th,td .range{white-space:nowrap}
.mean td,.mean th{font-weight:700;background:var(--card)}
.mean~tr:not(.mean) th{font-weight:400}
.swatch{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
.matrix td{color:#111;text-align:right;border:1px solid #fff}
.matrix .unseen{
background-image:repeating-linear-gradient(45deg,#0004 0 1px,#0000 1px 5px)}
pre{background:var(--card);border:1px solid var(--rule);border-radius:6px;padding:10px;
font-size:.85rem;white-space:pre-wrap;overflow-wrap:anywhere;margin:6px 0}
summary{cursor:pointer;padding:6px 0}
main{padding-bottom:48px}
.tip{position:absolute;pointer-events:none;background:var(--card);color:var(--ink);
border:1px solid var(--rule);border-radius:6px;padding:4px 8px;font-size:.8rem;
white-space:nowrap;z-index:1;box-shadow:0 2px 8px #0003}
.hair{stroke:var(--soft);stroke-dasharray:2 2}
.off{display:none}
@media print{body{font-size:11px}nav,.tip,.hair{display:none}.card,pre{background:none}
.charts{grid-template-columns:repeat(2,1fr)}.grid4{grid-template-columns:repeat(3,1fr)}
.swatch,.matrix td{print-color-adjust:exact;-webkit-print-color-adjust:exact}
h2{break-after:avoid}.card{break-inside:avoid}}
""" + "".join(
    f"polyline.c{i},path.line.c{i}{{stroke:var(--c{i})}}"
    f".band.c{i},.dots.c{i},.fill.c{i}{{fill:var(--c{i})}}.swatch.c{i}{{background:var(--c{i})}}"
    for i in range(8)
)
STYLE += "".join(
    f".t{level + TINTS}{{background:#{_tint(level)}}}"
    for level in range(-TINTS, TINTS + 1)
)

# What is hatched refers to this pattern, which every page holds once.
HATCH = (
    '<svg class="defs" aria-hidden="true"><defs><pattern id="hatch" width="6" '
    'height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="hatching" d="M0 0V6"/></pattern></defs></svg>'
)

# Reads the values of a chart back from its coordinates; without it nothing is lost but
# the values under the mouse and the buttons that hide lines.
SCRIPT = """
'use strict';
for (const button of document.querySelectorAll('button[data-s]'))
  button.addEventListener('click', () => {
    const shown = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', shown);
    for (const line of document.querySelectorAll(`g.s[data-s="${button.dataset.s}"]`))
      line.classList.toggle('off', !shown);
  });
const short = value => {
  const size = Math.abs(value);
  return size && (size < 1e-3 || size >= 1e5)
    ? value.toExponential(2) : String(+value.toPrecision(4));
};
for (const svg of document.querySelectorAll('svg[data-scale]')) {
  const [x0, x1, y0, y1] = svg.dataset.scale.split(' ').map(Number);
  const log = svg.dataset.log === '1';
  const box = svg.querySelector('path.axis').getAttribute('d').match(/[\\d.]+/g);
  const [left, top, bottom, right] = box.map(Number);
  const xOf = at => x0 + (x1 - x0) * (at - left) / (right - left);
  const yOf = at => {
    const share = (bottom - at) / (bottom - top);
    return log ? y0 * (y1 / y0) ** share : y0 + (y1 - y0) * share;
  };
  const lines = [...svg.querySelectorAll('polyline')].map(line => ({
    line, name: line.dataset.n,
    points: line.getAttribute('points').split(' ').map(p => p.split(',').map(Number)),
  }));
  const hair = document.createElementNS(svg.namespaceURI, 'path');
  hair.setAttribute('class', 'hair off');
  svg.append(hair);
  const tip = document.createElement('div');
  tip.className = 'tip off';
  svg.parentNode.append(tip);
  const leave = () => { tip.classList.add('off'); hair.classList.add('off'); };
  svg.addEventListener('pointerleave', leave);
  svg.addEventListener('pointermove', event => {
    const size = svg.getBoundingClientRect();
    const at = (event.clientX - size.left) * svg.viewBox.baseVal.width / size.width;
    const near = [];
    for (const {line, name, points} of lines) {
      if (line.parentNode.classList.contains('off')) continue;
      const distance = p => Math.abs(p[0] - at);
      const point = points.reduce((a, b) => distance(b) < distance(a) ? b : a);
      near.push({name, point});
    }
    if (!near.length || at < left - 8 || at > right + 8) return leave();
    const x = near[0].point[0];
    tip.replaceChildren(`step ${Math.round(xOf(x))}`);
    for (const {name, point} of near) {
      const row = document.createElement('div');
      row.textContent = (near.length > 1 ? `${name}: ` : '') + short(yOf(point[1]));
      tip.append(row);
    }
    hair.setAttribute('d', `M${x} ${top}V${bottom}`);
    hair.classList.remove('off');
    tip.classList.remove('off');
    const place = x * size.width / svg.viewBox.baseVal.width;
    const room = size.width - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(room, place + 12))}px`;
    tip.style.top = `${size.top - svg.parentNode.getBoundingClientRect().top}px`;
  });
}
"""


def head(style: str, script: str = "") -> str:
    """The start of a page that can load nothing, and run nothing but this script."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src {_source(style)}; script-src {_source(script)}; img-src data:; "
        "media-src data:; base-uri 'none'; form-action 'none'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style>"
    )


def _source(text: str) -> str:
    """What is allowed, by its content."""
    if not text:
        return "'none'"
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
