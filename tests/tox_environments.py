"""The environments of tox.ini, and those among them that the workflows run."""

from __future__ import annotations

import configparser
import itertools
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
TOX: Final = configparser.ConfigParser(interpolation=None)
TOX.read(ROOT / "tox.ini", encoding="utf-8")

DEFAULT: Final = tuple(TOX["tox"]["env_list"].split())
"""What ``tox`` runs."""


def _expanded(name: str) -> list[str]:
    """Return the names that braces stand for: ``py{311,312}-short`` is two."""
    parts = [part.split(",") for part in re.split(r"[{}]", name)]
    return ["".join(chosen) for chosen in itertools.product(*parts)]


SECTIONS: Final = {
    name: TOX[section]
    for section in TOX.sections()
    if section.startswith("testenv:")
    for name in _expanded(section.removeprefix("testenv:"))
}
"""The section of each environment that has one of its own."""
ENVIRONMENTS: Final = frozenset({*SECTIONS, *DEFAULT})


def labelled(label: str) -> tuple[str, ...]:
    """Return the environments of a label: what ``tox -m LABEL`` runs."""
    lines = TOX["tox"]["labels"].replace("\\\n", " ").splitlines()
    (names,) = (line.partition("=")[2] for line in lines if line.partition("=")[0].strip() == label)
    words = [word.strip() for word in re.split(r",(?![^{]*})", names)]
    return tuple(name for word in words for name in _expanded(word))


SHARES: Final = {
    name: (float(minutes), pattern)
    for name, minutes, pattern in (
        line.split(maxsplit=2)
        for line in (ROOT / ".ci" / "shares.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
}
"""The environments of which ``.ci/run`` runs one for each commit: the minutes that it takes, and what it prints."""
