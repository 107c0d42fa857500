"""The style sheet of a page, for light and dark color schemes, narrow screens and print."""

from __future__ import annotations

from askew.publish.page.frame import COLORS, FAINT, GROUND, INK, VERDICTS

# The same colors, lightened for a dark background.
_DARK_COLORS = ("#56b4e9", "#f0a04b", "#2fc79c", "#e3a0c4", "#9fd3f2", "#d9b84a")
_DARK = {"ink": "#e6edf3", "faint": "#3d444d", "ground": "#0d1117", "soft": "#9198a1", "shade": "#151b23"}
_LIGHT = {"ink": INK, "faint": FAINT, "ground": GROUND, "soft": "#57606a", "shade": "#f6f8fa"}

# The colors of groups, in the order of the groups. The first two are easy to distinguish for color-blind readers. No
# group has the color of better or worse, or one close to it.
GROUP_NAMES = tuple("abcdef")
_GROUPS = ("#0068a8", "#a84300", "#6e6000", "#4d5663", "#00707f", "#8a4a3c")
_DARK_GROUPS = ("#7cc4f0", "#f0a35a", "#d6c14a", "#aab4c0", "#5fc8d8", "#d6a094")
_DARK_VERDICTS = {"better": "#56d364", "worse": "#e58be0"}


def _grouped(colors: tuple[str, ...]) -> dict[str, str]:
    return {f"group-{name}": color for name, color in zip(GROUP_NAMES, colors, strict=True)}


def _variables(names: dict[str, str], colors: tuple[str, ...]) -> str:
    every = {**names, **{f"c{i}": color for i, color in enumerate(colors, 1)}}
    return ":root{" + ";".join(f"--{name}:{value}" for name, value in every.items()) + "}"


_SERIES = "".join(
    f".f{i}{{fill:var(--c{i});color:var(--c{i})}}.l{i}{{stroke:var(--c{i})}}" for i in range(1, len(COLORS) + 1)
)
_SERIES += "".join(f".f-{name}{{fill:var(--{name})}}" for name in VERDICTS)
_SERIES += "".join(f"mark.g{i}{{border-color:var(--group-{name})}}" for i, name in enumerate(GROUP_NAMES, 1))

_RULES = """
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0 auto;padding:1rem 1rem 4rem;max-width:70rem;background:var(--ground);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;overflow-wrap:break-word}
h1{font-size:1.8rem;line-height:1.2;margin:1rem 0 .5rem}
h2{font-size:1.3rem;line-height:1.25;margin:3rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--faint)}
h3{font-size:1.05rem;margin:1.75rem 0 .25rem}
p,ul,dl{max-width:46rem}
.lead{font-size:1.1rem}
.note,figcaption{color:var(--soft);font-size:.875rem;max-width:46rem}
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;max-width:none}
a{color:var(--c1)}
a:focus-visible,.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--c1);outline-offset:2px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:1rem 0}
dt{color:var(--soft)}
dd{margin:0;min-width:0}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;font-size:.85em}
dd{overflow-wrap:anywhere}
pre{overflow-x:auto;background:var(--shade);padding:.75rem;border:1px solid var(--faint);border-radius:4px}
.scroll{overflow-x:auto;max-width:100%;margin:1rem 0 .25rem}
table{border-collapse:collapse;font-size:.9rem;line-height:1.35}
caption{text-align:left;font-weight:600;padding:0 0 .4rem}
caption span{position:sticky;left:0;display:inline-block;max-width:min(46rem,calc(100vw - 2rem))}
th,td{padding:.28rem .6rem;text-align:left;vertical-align:baseline}
thead th{border-bottom:2px solid var(--soft);vertical-align:bottom;font-weight:600}
tbody tr+tr>*{border-top:1px solid var(--faint)}
tbody+tbody{border-top:1px solid var(--soft)}
th[scope=row]{font-weight:500}
th.group{background:var(--shade);font-weight:600}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.words{min-width:9rem;max-width:34rem}
.name{white-space:nowrap}
th.code{min-width:7.5rem;max-width:20rem}
.quote{min-width:11rem;max-width:26rem;overflow-wrap:anywhere}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:.5rem 2rem}
figure{margin:1rem 0;min-width:0}
figure .scroll{margin:0}
figcaption{margin-top:.25rem}
figcaption strong{color:var(--ink);font-weight:600}
svg{display:block;width:100%;min-width:21rem;max-width:34rem;height:auto}
.own svg{width:auto;max-width:none}
.ink{fill:var(--ink)}.rim{stroke:var(--ground)}.ground{fill:var(--ground)}.lfaint{stroke:var(--faint)}.link{stroke:var(--ink)}
mark{background:none;color:inherit;border-bottom:3px solid}
mark.g2{border-bottom-style:double}mark.g3{border-bottom-style:dotted}
details{margin:1rem 0}
summary{cursor:pointer}
summary h2{display:inline;border:0;margin:0;padding:0;font-size:1.15rem}
details.folded{margin:0;padding:.6rem 0;border-top:1px solid var(--faint)}
.findings{max-width:50rem;font-size:1.1rem;padding-left:1.5rem}.findings li{margin:.5rem 0}
footer{margin-top:3rem;border-top:1px solid var(--faint);padding-top:.75rem;color:var(--soft);font-size:.875rem}
@media (max-width:36rem){body{padding:.5rem .75rem 3rem}h1{font-size:1.45rem}dl{grid-template-columns:1fr;gap:0}
dd{margin:0 0 .5rem}th,td{padding:.25rem .4rem}
th[scope=row].name,th[scope=row].code{position:sticky;left:0;max-width:45vw;background:var(--ground)}}
@media print{details::details-content{content-visibility:visible;block-size:auto}
body{max-width:none;padding:0;font-size:10pt}nav{display:none}h2,h3,caption{break-after:avoid}
figure,tr{break-inside:avoid}.scroll{overflow:visible}table{font-size:8pt}svg{min-width:0;max-width:14cm}}
"""

CSS = (
    _variables({**_LIGHT, **_grouped(_GROUPS), **VERDICTS}, COLORS)
    + "@media screen and (prefers-color-scheme:dark){"
    + _variables({**_DARK, **_grouped(_DARK_GROUPS), **_DARK_VERDICTS}, _DARK_COLORS)
    + "}"
    + _RULES
    + _SERIES
    + "\n"
)
