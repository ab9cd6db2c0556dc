"""The table of the functions of graphs, in ``docs/reference/graphs.md``: it has all of them, and says what they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from quiesce.simulator.runtime.elf_reading import read_defined_names
from quiesce.simulator.runtime.vendor_libraries import releases_of_functions

ROOT: Final = Path(__file__).parent.parent.parent
PAGE: Final = ROOT / "docs" / "reference" / "graphs.md"
SURFACES: Final = {"cu": "driver", "cuda": "runtime", "hip": "HIP"}
OF_GRAPHS: Final = re.compile(r"(cu|cuda|hip)((?:Graph(?!ics)|UserObject|Device(?:[GS]et)?GraphMem)\w*)")
VERSION: Final = re.compile(r"(?:_v\d|_ptsz|_spt)+$")


def names_of_graphs(names: set[str] | frozenset[str]) -> dict[str, dict[str, set[str]]]:
    """Return the functions of graphs among names: by what the table calls them, whose they are, and their own names."""
    found: dict[str, dict[str, set[str]]] = {}
    for name in names:
        if matched := OF_GRAPHS.fullmatch(name):
            short = VERSION.sub("", matched[2])
            found.setdefault(short, {}).setdefault(SURFACES[matched[1]], set()).add(name)
    return found


def rows() -> dict[str, tuple[set[str], str, str]]:
    table = re.findall(
        r"^\| `(\w+)` \| (.+?) \| (simulated|stub) \| ?(.*?) ?\|$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    return {name: (set(whose.split(", ")), state, notes) for name, whose, state, notes in table}


def test_the_table_has_every_function_and_says_what_it_is(library: str) -> None:
    simulated = {name.removeprefix("simulated_") for name in read_defined_names(Path(library))}
    listed = (ROOT / "harness/quiesce/simulator/functions/libcudart.txt").read_text("utf-8").split()
    known = {*releases_of_functions("libcuda.so.1"), *releases_of_functions("libamdhip64.so"), *listed}
    table = rows()
    functions = names_of_graphs(known | simulated)
    assert table.keys() == functions.keys()
    for name, (whose, state, notes) in table.items():
        assert whose == functions[name].keys(), name
        missing = set().union(*functions[name].values()) - simulated
        if state == "stub":
            assert not any(names & simulated for names in functions[name].values()), name
            assert notes, f"the table says why {name} is a stub"
        else:
            assert missing == set(re.findall(r"`(\w+)` is a stub", notes)), name
