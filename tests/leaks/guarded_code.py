"""Modules whose code says how many entries a container may have.

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


# --- guards with a number
for guard, most in {
    "if len(X) < 40: X.append(1)": 40,
    "if len(X) <= 39: X.append(1)": 40,
    "if 40 > len(X): X.append(1)": 40,
    "if len(X) < LIMIT: X.append(1)": 64,
    "if len(X) < 2 * LIMIT + 1: X.append(1)": 129,
    "if len(X) < imported: X.append(1)": 99,
    "if len(X) < module.LIMIT: X.append(1)": 99,
    "if len(X) < given: X.append(1)": 32,
    "if not len(X) >= 40: X.append(1)": 40,
    "n = len(X); (X.append(1) if n < 40 else None)": 40,
    "(n := len(X)) < 40 and X.append(1)": 40,
    "limit = min(LIMIT, 48); len(X) < limit and X.append(1)": 48,
    "len(X) < LIMIT + LIMIT * 0.5 and X.append(1)": 96,
    "X.append(1); X[:] = X[-20:]": 20,
    "if IS_DUE: X.append(1); X = X[-20:]": 20,
    "X.append(1); del X[:-20]": 20,
    "X.append(1); del X[20:]": 20,
    "if IS_DUE: X.append(1); X = X[:LIMIT]": 64,
}.items():
    case(
        guard,
        GUARDED,
        f"""
        import bounds_limits as module
        from bounds_limits import LIMIT as imported
        LIMIT = 1 << 6
        IS_DUE = False
        X = []
        def run(given=32):
            global X
            {guard}  # here
        """,
        most,
    )
case(
    "cleared when full",
    GUARDED,
    "X = []\ndef run():\n    X.append(1)\n    if len(X) == 40:  # here\n        X.clear()",
    40,
)
case("trimmed later", GUARDED, "X = []\ndef run():\n    X.append(1)\n    if len(X) > 40:  # here\n        X.pop(0)", 40)
case(
    "trimmed before", GUARDED, "X = []\ndef run():\n    if len(X) > 40:  # here\n        X.clear()\n    X.append(1)", 41
)
case("left when full", GUARDED, "X = []\ndef run():\n    if len(X) >= 40:  # here\n        return\n    X.append(1)", 40)
case(
    "no number can be read",
    GUARDED,
    """
    X = []
    def limit(): return 40
    def run():
        if len(X) < limit():  # here
            X.append(1)
    """,
)
case(
    "the capacity of an instance",
    GUARDED,
    """
    import collections
    class Recent:
        def __init__(self, capacity):
            self.capacity = capacity
            self.items = collections.OrderedDict()
        def put(self, key):
            self.items[key] = 1
            while len(self.items) > self.capacity:  # here
                self.items.popitem(last=False)
    RECENT = Recent(77)
    X = RECENT.items
    def run(): RECENT.put(object())
    """,
    77,
)
case(
    "the capacity of its class",
    GUARDED,
    """
    class Recent:
        CAPACITY = 10 * 5
        items = []
        def put(self):
            if len(self.items) < self.CAPACITY:  # here
                self.items.append(1)
    X = Recent.items
    def run(): Recent().put()
    """,
    50,
)
case(
    "a length that a method tells",
    GUARDED,
    """
    class Recent:
        def __init__(self): self._items, self.capacity = {}, 33
        def __len__(self): return len(self._items)
        def put(self, key):
            self._items[key] = 1
            if len(self) > self.capacity:  # here
                self.drop()
        def drop(self): self._items.popitem()
    RECENT = Recent()
    X = RECENT._items
    def run(): RECENT.put(object())
    """,
    33,
)
case(
    "a dict of its own that is guarded",
    GUARDED,
    """
    class Table(dict):
        capacity = 12
        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            if len(self) > self.capacity:  # here
                del self[next(iter(self))]
    X = Table()
    def run(): X[object()] = 1
    """,
    12,
)
case(
    "a variable of a closure that is guarded",
    GUARDED,
    """
    def make(most):
        kept = []
        def work():
            if len(kept) < most:  # here
                kept.append(1)
        return work
    run = make(21)
    X = next(cell.cell_contents for cell in run.__closure__ if type(cell.cell_contents) is list)
    """,
    21,
)
case(
    "a list that is filled in the branch of another",
    GUARDED,
    """
    X = []
    Y = []
    def run():
        if len(Y) < 40:  # here
            Y.append(1)
            X.append(1)
    """,
    40,
)
case(
    "a counter",
    GUARDED,
    """
    class Pool:
        def __init__(self): self.count, self.most, self.items = 0, 44, []
        def grow(self):
            if self.count < self.most:  # here
                self.count += 1
                self.items.append(1)
    POOL = Pool()
    X = POOL.items
    def run(): POOL.grow()
    """,
    44,
)
case(
    "a counter that leaves early",
    GUARDED,
    """
    N = 0
    X = []
    def run():
        global N
        N += 1
        if N >= 40:  # here
            return
        X.append(1)
    """,
    40,
)
case(
    "an argument is guarded",
    GUARDED,
    """
    X = []
    def put(kept, most):
        if len(kept) < 40:  # here
            kept.append(1)
    def run(): put(X, 40)
    """,
    40,
)
case("a guard and a removal", GUARDED, "X = []\ndef run():\n    X.append(1)\n    if len(X) > 40: X.pop()  # here", 40)
case("maxlen", DECLARED, "import collections\nX = collections.deque(maxlen=7)\ndef run(): X.append(1)", 7)
case("maxsize", DECLARED, "import functools\n@functools.lru_cache(9)  # here\ndef X(n): return n\ndef run(): X(1)", 9)
case(
    "maxsize of its holder",
    DECLARED,
    """
    class Recent:
        def __init__(self): self.__maxsize, self.__items, self.__size = 55, {}, 0
        def put(self):
            while self.__size > self.__maxsize:  # here
                self.__items.popitem()
            self.__items[1] = 1
    RECENT = Recent()
    X = RECENT._Recent__items
    def run(): RECENT.put()
    """,
    55,
)
case(
    "numbers that are counted",
    GUARDED,
    """
    import itertools
    COUNT = itertools.count()
    X = []
    def run():
        number = next(COUNT)
        if number < 40:  # here
            X.append(number)
    """,
    40,
)
case(
    "emptied with another that is guarded",
    GUARDED,
    """
    X = {}
    VALUES = {}
    def run():
        key = object()
        X[key] = VALUES[key] = 1
        if len(VALUES) > 40:  # here
            VALUES.pop(key)
            X.pop(key)
    """,
    40,
)
