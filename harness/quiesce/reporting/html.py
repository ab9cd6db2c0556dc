"""The HTML report: one page that needs no network, no server and no second file.

Jinja2 lays the page out. Everything is escaped (``autoescape``), and a missing value is an error. Pictures are inline
SVG (:mod:`quiesce.reporting.page.picture`) and need no library. What ``quiesce exec`` ran has a page of its own.

A page states a Content-Security-Policy that allows its own script by its hash and nothing from a network:
what a driver answers would not run even if it were not escaped. Table, findings, operations and pictures are plain HTML
and are there without JavaScript, which adds filters, sorting, copying, and reads out a moment of a plot.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quiesce.files import write_atomically
from quiesce.model.results import Report, Verdict
from quiesce.reporting.page.cards import anchors, make_cards
from quiesce.reporting.page.matrix import SEVERITY, make_matrix
from quiesce.reporting.page.summary import headline, reasons, vocabulary_of
from quiesce.reporting.program_page.page import is_of_programs, make_program_page
from quiesce.reporting.result_lists import count_by_backend, ordered
from quiesce.reporting.text import clean_line

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

EXTRA: Final = "quiesce[report]"
"""What to install for this report."""
SCRIPTS: Final = ("page.js", "plot.js", "card_plots.js", "report.js")
PROGRAM_SCRIPTS: Final = ("page.js", "plot.js", "program.js")
"""What a page's script is made of, in order."""
CHUNK_ROWS: Final = 20
"""Rows of the matrix that the browser lays out together, once one of them comes into sight."""
_COUNTED: Final = (
    Verdict.PASSED,
    Verdict.FAILED,
    Verdict.BROKEN_CASE,
    Verdict.KNOWN_UPSTREAM,
    Verdict.INCONCLUSIVE,
    Verdict.UNSUPPORTED,
    Verdict.NOT_PROMISED,
)
"""The columns of the table of counts, in order."""


def why_unavailable() -> str:
    """Return one line that says what to install, or '' where the library of this report is there."""
    is_there = find_spec("jinja2") is not None
    return "" if is_there else f"report.html was not written: Jinja2 missing; pip install '{EXTRA}'"


def render_html(report: Report) -> str:
    """Return the report as a page. Equal results give equal bytes, apart from what ``run`` holds.

    Raises :class:`ImportError` where a library is missing: see :func:`why_unavailable`.
    """
    if is_of_programs(report):
        return _render_program(report)
    results = ordered(report.results)
    counts = count_by_backend(results)
    cards = tuple(make_cards(results))
    environment = _environment()
    words = vocabulary_of(results)
    return environment.get_template("report.html.j2").render(
        words=words,
        headline=headline(report, counts),
        counts=[replace(each, backend=clean_line(each.backend)) for each in counts],
        verdicts={
            verdict: sum(each.by_verdict[verdict] for each in counts) for verdict in words.listed(counts, SEVERITY)
        },
        counted_verdicts=words.listed(counts, _COUNTED),
        chunk_rows=CHUNK_ROWS,
        matrix=make_matrix(results, anchors(results)),
        cards=cards,
        reasons=reasons(results),
        run=[(clean_line(key), clean_line(value)) for key, value in words.run(report.run)],
        seed=report.seed,
        rules=words.rules(finding.rule for result in results for finding in result.findings),
        **_looks(environment, "report.css", SCRIPTS),
    )


def _render_program(report: Report) -> str:
    """Return the page of what ``quiesce exec`` ran: its pictures are part of it, and it needs no library for them."""
    environment = _environment()
    return environment.get_template("program.html.j2").render(
        page=make_program_page(replace(report, results=tuple(ordered(report.results)))),
        **_looks(environment, "program.css", PROGRAM_SCRIPTS),
    )


def _looks(environment: Environment, style: str, scripts: Iterable[str]) -> dict[str, str]:
    script = _source(environment, *scripts)
    digest = script_digest(script)
    return {"style": _source(environment, "base.css", "plot.css", style), "script": script, "script_digest": digest}


def script_digest(script: str) -> str:
    """Return the hash of an inline script as the policy of a page states it (CSP Level 3, hash-source)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def write_html(report: Report, path: Path) -> None:
    """Write the page to ``path`` atomically. Raises :class:`OSError`, and what :func:`render_html` raises."""
    write_atomically(path, render_html(report))


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("quiesce.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    return environment


def _breakable(text: str, length_min: int = 8) -> Markup:
    """Return a long name, escaped, that a narrow column may break behind ``_``, ``.``, ``:``, ``/`` and ``-``.

    The parts have at least ``length_min`` characters: an element for every word would double a large page.
    """
    from markupsafe import Markup, escape

    parts = re.findall(rf".{{{length_min},}}?[_.:/-]+(?=\w)|.+", text, re.DOTALL)
    return Markup("<wbr>").join(map(escape, parts))


def _source(environment: Environment, *names: str) -> str:
    assert environment.loader is not None
    return "".join(environment.loader.get_source(environment, name)[0] for name in names)
