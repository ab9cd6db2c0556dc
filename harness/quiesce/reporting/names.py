"""The two halves of a result's name: where it belongs, and what it is called there."""

from __future__ import annotations


def split_case(case: str) -> tuple[str, str]:
    """Return the topic and the behaviour: ``pool/trim`` gives ``pool`` and ``trim``.

    A test's name, ``unit/test_pool.py::test_trim[a/b]``, is divided within its path: its parameters may hold anything.
    """
    path, mark, inside = case.partition("::")
    topic, _, name = path.rpartition("/")
    return topic, name + mark + inside


def shorten_middle(name: str, length_max: int) -> str:
    """Return a name of at most ``length_max`` characters, its middle left out: a command's end tells it from others."""
    if len(name) <= length_max:
        return name
    head = length_max // 3
    return f"{name[:head]}…{name[head + 1 - length_max :]}"
