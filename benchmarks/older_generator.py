"""Sequences as another commit of this repository generates them: time_to_fault.py runs this with its package.

``python older_generator.py FOLDER`` imports quiesce from a folder, whatever its modules are called there. Each line of
the input asks for one sequence, in JSON; each line of the output is one, as values of JSON and requests in text.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

HOMES: Final[Mapping[str, tuple[str, ...]]] = {
    "generate_one": ("quiesce.allocators.generation.decoder", "quiesce.generation.bulk"),
    "format_request": ("quiesce.model.requests", "quiesce.request_format"),
    "Description": ("quiesce.model.backend", "quiesce.backend"),
    "Capability": ("quiesce.model.backend", "quiesce.backend"),
    "Promise": ("quiesce.model.backend", "quiesce.backend"),
    "Gauge": ("quiesce.model.gauges", "quiesce.gauges"),
    "Source": ("quiesce.model.gauges", "quiesce.gauges"),
}
"""Where names are and were, the newest place first. A commit has one of them."""


def _find(name: str) -> Any:
    for home in HOMES[name]:
        try:
            return getattr(importlib.import_module(home), name)
        except (ImportError, AttributeError):
            continue
    raise SystemExit(f"quiesce has no {name} in {' or '.join(HOMES[name])}; add its place to {__file__}")


def _known(kind: Any, words: Iterable[str]) -> frozenset[Any]:
    """Return the members that the words stand for; what the commit does not know yet, it can't generate either."""
    return frozenset(kind(word) for word in words if word in {str(member) for member in kind})


def main() -> None:
    """Answer until the input ends."""
    sys.path.insert(0, sys.argv[1])
    generate_one, format_request = _find("generate_one"), _find("format_request")
    for line in sys.stdin:
        asked = json.loads(line)
        claims = asked["description"]
        gauges = _known(_find("Gauge"), claims["gauges"])
        claims["capabilities"] = _known(_find("Capability"), claims["capabilities"])
        claims["promises"] = _known(_find("Promise"), claims["promises"])
        claims["gauges"] = {gauge: _known(_find("Source"), claims["gauges"][gauge]) for gauge in gauges}
        sequence = generate_one(
            _find("Description")(**claims), asked["seed"], asked["number"], hostile=asked["hostile"]
        )
        loop, device = sequence.loop, sequence.device
        answer = {
            "device": {name: getattr(device, name) for name in type(device).__slots__},
            "requests": [format_request(operation) for operation in sequence.operations],
            "loop": None if loop is None else [loop.count, loop.templates, loop.gauge, loop.after],
        }
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
