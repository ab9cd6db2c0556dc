"""Modules whose code says no number for a container: it asks for entries, or does not even that.

Each module fills ``X`` in ``run()``. The line that its bound should name ends with ``# here``.
"""

from __future__ import annotations

from typing import Final

from quiesce.leaks.explaining.bounds import BoundKind

NONE, MEMO, REMOVES, EXPIRES, GUARDED, DECLARED = BoundKind

CASES: Final[dict[str, tuple[BoundKind, int | None, str]]] = {}


def case(name: str, kind: BoundKind, source: str, most: int | None = None) -> None:
    """Add a module, and what is to be read of its bound."""
    assert name not in CASES
    CASES[name] = kind, most, source


# --- nothing bounds these
case("appends", NONE, "X = []\ndef run(): X.append(1)")
case("a set", NONE, "X = set()\ndef run(): X.add(object())")
case("a length is asserted", NONE, "X = []\ndef run():\n    X.append(1)\n    assert len(X) < 1000")
case("asks whether it is empty", NONE, "X = []\ndef run():\n    if len(X) > 0: print(end='')\n    X.append(1)")
case(
    "a length is only said",
    NONE,
    """
    import logging
    X = []
    def run():
        X.append(1)
        if len(X) > 1000:
            logging.debug("many")
    """,
)
case(
    "a removal that did not run",
    NONE,
    """
    X = []
    def run(): X.append(1)
    def clean(): X.clear()
    """,
)
case(
    "a callback that did not run",
    NONE,
    """
    X = []
    def run():
        def undo():
            X.pop()
        X.append(1)
    """,
)
case(
    "another variable of the same name",
    NONE,
    """
    X = []
    def run():
        X.append(1)
        other()
    def other():
        X = [1]
        X.pop()
    """,
)
case(
    "an attribute of another class",
    NONE,
    """
    class Kept:
        def __init__(self): self.items = []
        def add(self): self.items.append(1)
    class Other:
        def __init__(self): self.items = [1]
        def take(self): return self.items.pop()
    KEPT = Kept()
    OTHER = Other()
    X = KEPT.items
    def run():
        KEPT.add()
        Other().take()
        other = Other()
        other.items.clear()
        OTHER.items.clear()
    """,
)
case(
    "an argument that is annotated with another class",
    NONE,
    """
    class Kept:
        def __init__(self): self.items = []
    class Other:
        def __init__(self): self.items = [1]
    KEPT = Kept()
    X = KEPT.items
    def drain(other: Other): other.items.clear()
    def run():
        KEPT.items.append(1)
        drain(Other())
    """,
)
case(
    "the class makes new ones in its constructor",
    NONE,
    """
    class Kept:
        def __init__(self): self.items = []
    KEPT = Kept()
    X = KEPT.items
    def run():
        Kept()
        KEPT.items.append(1)
    """,
)
case(
    "made when it is first asked for",
    NONE,
    """
    X = []
    def run():
        global X
        if X is None:
            X = []
        X.append(1)
    """,
)
case("it is only extended", NONE, "X = []\ndef run():\n    global X\n    X += [1]")
case(
    "another list is guarded",
    NONE,
    """
    X = []
    Y = []
    def run():
        if len(Y) < 40:
            Y.append(1)
        X.append(1)
    """,
)
case(
    "fills from some length on",
    NONE,
    """
    N = 0
    X = []
    def run():
        global N
        N += 1
        if N > 5:
            X.append(1)
    """,
)
case(
    "a counter that is counted down elsewhere",
    NONE,
    """
    class Pool:
        def __init__(self): self.active, self.kept = 0, []
        def enter(self):
            if self.active < 40:
                self.active += 1
                self.kept.append(1)
        def leave(self): self.active -= 1
    POOL = Pool()
    X = POOL.kept
    def run():
        POOL.enter()
        POOL.leave()
    """,
)
case("two lengths are compared", NONE, "X = []\nY = []\ndef run():\n    X.append(1)\n    if len(X) == len(Y): Y.pop()")

# --- membership
case("in", MEMO, "X = {}\ndef run():\n    if 1 not in X:  # here\n        X[1] = 2")
case("get", MEMO, "X = {}\ndef run():\n    if X.get(1) is None:  # here\n        X[1] = 2")
case("setdefault", MEMO, "X = {}\ndef run():\n    X.setdefault(1, []).append(2)  # here")
case("counts", MEMO, "import collections\nX = collections.Counter()\ndef run():\n    X['a'] += 1  # here")
case("default", MEMO, "import collections\nX = collections.defaultdict(list)\ndef run(): X[1] = 2")
case(
    "try",
    MEMO,
    """
    X = {}
    def run():
        try:
            return X[1]  # here
        except KeyError:
            X[1] = 2
    """,
)
case(
    "in another",
    MEMO,
    """
    X = []
    SEEN = set()
    def run():
        if 1 in SEEN:  # here
            return
        SEEN.add(1)
        X.append(1)
    """,
)
case("cache", MEMO, "import functools\n@functools.cache  # here\ndef X(n): return [n]\ndef run(): X(1)")

case("moved", NONE, "X = {1: 2}\ndef run():\n    X[1] = X.pop(1)\n    X[object()] = 1")
case("replaced by an equal one", MEMO, "X = []\ndef run():\n    if X: X.remove(1)  # here\n    X.append(1)")
case("an index", NONE, "X = []\ndef run():\n    i = 0\n    while i < len(X): i += 1\n    X.append(1)")
case(
    "an index that is asked for",
    NONE,
    """
    class Table:
        def __init__(self): self.rows = []
        def row(self, index):
            if index >= len(self.rows):
                raise IndexError(index)
            return self.rows[index]
    TABLE = Table()
    X = TABLE.rows
    def run():
        X.append(1)
        TABLE.row(0)
    """,
)
case(
    "a length from before",
    NONE,
    """
    X = []
    def run():
        before = len(X)
        X.append(1)
        if len(X) > before + 1:
            raise ValueError
        if len(X) != before:
            return X
    """,
)
case(
    "what was seen in this call",
    NONE,
    """
    X = []
    def run():
        seen = set()
        for each in (1, 1, 2):
            if each not in seen:
                seen.add(each)
                X.append(each)
    """,
)
case(
    "a counter of this call",
    NONE,
    """
    X = []
    def run():
        count = 0
        for _ in range(9):
            if count < 5:
                count += 1
                X.append(1)
    """,
)
case(
    "a counter that begins anew",
    NONE,
    """
    N = 0
    X = []
    def run():
        global N
        if N < 5:
            N += 1
            X.append(1)
        else:
            reset()
        reset()
    def reset():
        global N
        N = 0
    """,
)
case(
    "each but one",
    NONE,
    """
    N = 0
    X = []
    def run():
        global N
        N += 1
        if N != 5:
            X.append(1)
    """,
)
case(
    "the maxsize is another's",
    NONE,
    """
    class Pool:
        def __init__(self): self.maxsize, self.idle, self.log = 1000, [], []
        def put(self):
            if len(self.idle) < self.maxsize:
                self.idle.append(1)
            self.log.append(1)
    POOL = Pool()
    X = POOL.log
    def run(): POOL.put()
    """,
)
