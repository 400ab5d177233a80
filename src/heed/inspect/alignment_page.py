"""Page of word alignments: a grid for each pair of sentences, in one HTML file without scripts."""

from __future__ import annotations

import html
from collections.abc import Sequence

from heed.inspect.html_document import html_document
from heed.statistical.alignment.pairs import Links
from heed.text.readers.links import GoldLinks
from heed.text.readers.tokenised import TokenisedPairs

MOST = 50
"""Pairs that are drawn."""
STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; color: #1a1a1a; background: #fff; }
table { border-collapse: collapse; margin: 0 0 2.5rem; }
th { font-weight: normal; text-align: right; padding: 0 .5rem; white-space: nowrap; }
thead th { vertical-align: bottom; text-align: left; padding: .3rem 0; }
thead th span { writing-mode: vertical-rl; transform: rotate(180deg); }
td { width: 1.3rem; height: 1.3rem; border: 1px solid #ccc; padding: 0; text-align: center; }
td.link { background: #2458a6; color: #fff; }
td.sure { box-shadow: inset 0 0 0 3px #d97b00; }
td.possible { box-shadow: inset 0 0 0 2px #f0c27a; }
"""
_NAMES = {"link": "linked", "sure": "sure in the reference", "possible": "possible in the reference"}


def render_alignments(pairs: TokenisedPairs, links: Sequence[Links], gold: Sequence[GoldLinks] | None = None) -> str:
    """The page of the first pairs: source words are rows, target words columns. `gold` is outlined."""
    num = min(MOST, len(links))
    grids = [
        _grid(number, pairs.sources[number], pairs.targets[number], links[number], gold[number] if gold else None)
        for number in range(num)
    ]
    outlines = " Links of the reference have an outline, thicker if they are sure." if gold else ""
    body = f"""<h1>Word alignment</h1>
<p>The first {num} of {len(links):,} pairs. Source words are rows, target words columns; linked words share a dark
square.{outlines}</p>
{"".join(grids)}"""
    return html_document("heed align", STYLE, body)


def _grid(number: int, src: Sequence[str], tgt: Sequence[str], links: Links, gold: GoldLinks | None) -> str:
    heads = "".join(f"<th scope=col><span>{html.escape(word)}</span></th>" for word in tgt)
    rows = "".join(
        f"<tr><th scope=row>{html.escape(word)}</th>"
        + "".join(_cell((i, j), links, gold) for j in range(len(tgt)))
        + "</tr>"
        for i, word in enumerate(src)
    )
    return f"<h2>Pair {number + 1}</h2><table><thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table>\n"


def _cell(link: tuple[int, int], links: Links, gold: GoldLinks | None) -> str:
    kinds = ["link"] * (link in links)
    if gold is not None and link in gold.possible:
        kinds.append("sure" if link in gold.sure else "possible")
    if not kinds:
        return "<td></td>"
    name = ", ".join(_NAMES[kind] for kind in kinds)
    return f'<td class="{" ".join(kinds)}" title="{name}">{"●" if "link" in kinds else ""}</td>'
