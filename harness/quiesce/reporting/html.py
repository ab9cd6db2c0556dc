"""The HTML report: one page that needs no network, no server and no second file.

Libraries, and why these:

- *Jinja2* lays the page out. Everything is escaped (``autoescape``), and a missing value is an error.
- *Plotly* draws the plots. It zooms, reads out values and saves a picture, all of which a long timeline needs and
  drawings made beforehand (Matplotlib, Altair with vl-convert) do not do. uPlot is smaller, but it is not on
  PyPI, and a copy in this repository would be one that nobody updates. Plotly's script is 4.8 MB; packed it adds 2 MB
  to a page that has a plot and nothing to one that has none, and it is unpacked when the first one is shown.

What ``quiesce exec`` ran has a page of its own, whose pictures are inline SVG and need no library.

A page states a Content-Security-Policy that allows its own scripts by their hashes and nothing from a network:
what a driver answers would not run even if it were not escaped. Table, findings and operations are plain HTML and are
there without JavaScript, which adds filters, sorting, plots and copying.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quiesce.files import write_atomically
from quiesce.model.results import Report, Verdict
from quiesce.reporting.page.cards import anchors, make_cards
from quiesce.reporting.page.matrix import SEVERITY, make_matrix
from quiesce.reporting.page.plot_library import load_plot_library, script_digest
from quiesce.reporting.page.summary import headline, reasons, vocabulary_of
from quiesce.reporting.program_page.page import is_of_programs, make_program_page
from quiesce.reporting.result_lists import count_by_backend, ordered
from quiesce.reporting.text import clean_line

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

EXTRA: Final = "quiesce[report]"
"""What to install for this report."""
SCRIPTS: Final = ("page.js", "plots.js", "timelines.js", "growth.js", "report.js")
"""What the page's own script is made of, in order."""
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
    """Return one line that says what to install, or '' where the libraries of this report are there."""
    missing = [name for module, name in (("jinja2", "Jinja2"), ("plotly", "Plotly")) if find_spec(module) is None]
    return f"report.html was not written: {' and '.join(missing)} missing; pip install '{EXTRA}'" if missing else ""


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
    script = "".join(_source(environment, name) for name in SCRIPTS)
    library = load_plot_library() if any(card.has_plot for card in cards) else None
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
        style=_source(environment, "base.css") + _source(environment, "report.css"),
        script=script,
        library=library,
        script_digests=[script_digest(script), *([library.digest] if library else [])],
    )


def _render_program(report: Report) -> str:
    """Return the page of what ``quiesce exec`` ran: its pictures are part of it, and it needs no library for them."""
    environment = _environment()
    script = "".join(_source(environment, name) for name in ("page.js", "program.js"))
    return environment.get_template("program.html.j2").render(
        page=make_program_page(replace(report, results=tuple(ordered(report.results)))),
        style=_source(environment, "base.css") + _source(environment, "program.css"),
        script=script,
        script_digest=script_digest(script),
    )


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


def _source(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
