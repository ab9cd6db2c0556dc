"""Modules whose code takes entries out of a container, some because of the time.

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


# --- removals
for removal in (
    "X.pop()",
    "X.pop(0)",
    "X.clear()",
    "X.remove(1)",
    "del X[0]",
    "X[:] = []",
    "X[:] = [each for each in X if each > 1]",
    "heapq.heappop(X)",
    "if IS_DUE: X = X[1:]",
    "if IS_DUE: X = [each for each in X if each > 1]",
    "if IS_DUE: X = []",
    "if IS_DUE: old, X = X, []",
    "atexit.unregister(X.remove)",
    "alias = X; alias.pop()",
    "list.pop(X)",
    "helper(X)",
    "helper(given=X)",
    "that().pop()",
    "[X][0] and (X or []).pop()",
):
    case(
        removal,
        REMOVES,
        f"""
        import atexit, heapq
        X = [1]
        IS_DUE = False
        def helper(given): given.pop(){"  # here" if "helper" in removal else ""}
        def that(): return X
        def run():
            global X
            X.append(1)
            {removal}{"  # here" if "helper" not in removal else ""}
        """,
    )
for removal in ("X.discard(1)", "X -= {1}", "X &= {1}", "X.difference_update({1})"):
    case(removal, REMOVES, f"X = set()\ndef run():\n    global X\n    X.add(2)\n    {removal}  # here")
case(
    "popitem", REMOVES, "import collections\nX = collections.OrderedDict(a=1)\ndef run():\n    X.popitem(False)  # here"
)
case("popleft", REMOVES, "import collections\nX = collections.deque('ab')\ndef run():\n    X.popleft()  # here")
case("finalize", REMOVES, "import weakref\nX = {}\ndef run():\n    weakref.finalize(run, X.pop, 1, None)  # here")
case(
    "weak values",
    REMOVES,
    "import weakref\nWEAK = weakref.WeakValueDictionary()\nX = WEAK.data\ndef run(): WEAK[1] = run",
)
case(
    "a dict of its own",
    REMOVES,
    """
    class Table(dict):
        def take(self, key):
            return super().pop(key, None)  # here
    X = Table()
    def run():
        X[1] = 2
        X.take(1)
    """,
)
case(
    "an entry of a table",
    REMOVES,
    """
    POOLS = {"a": []}
    X = POOLS["a"]
    def run():
        POOLS["a"].append(1)
        for pool in POOLS.values():
            pool.pop()  # here
    """,
)
case(
    "a private attribute",
    REMOVES,
    """
    class Kept:
        def __init__(self): self.__items = []
        def work(self):
            self.__items.append(1)
            self.__items.pop()  # here
    KEPT = Kept()
    X = KEPT._Kept__items
    def run(): KEPT.work()
    """,
)
case(
    "an attribute of a class",
    REMOVES,
    """
    class Kept:
        items = []
    class Below(Kept):
        def work(self):
            self.items.append(1)
            self.items.pop()  # here
    X = Kept.items
    def run(): Below().work()
    """,
)
case(
    "a slot",
    REMOVES,
    """
    class Kept:
        __slots__ = ("items",)
        def __init__(self): self.items = [1]
    KEPT = Kept()
    X = KEPT.items
    def run():
        KEPT.items.pop()  # here
        KEPT.items.append(1)
    """,
)
case(
    "a default of an argument",
    REMOVES,
    """
    def run(kept=[]):
        kept.append(1)
        kept.pop()  # here
    X = run.__defaults__[0]
    """,
)
case(
    "a variable of a closure",
    REMOVES,
    """
    def make():
        kept = []
        def work():
            kept.append(1)
            kept.pop()  # here
        return work
    run = make()
    X = run.__closure__[0].cell_contents
    """,
)
case(
    "a method that another decorates",
    REMOVES,
    """
    import functools
    def decorated(function):
        @functools.wraps(function)
        def called(*arguments): return function(*arguments)
        return called
    class Kept:
        def __init__(self): self.items = []
        @decorated
        def work(self):
            self.items.append(1)
            self.items.pop()  # here
    KEPT = Kept()
    X = KEPT.items
    def run(): KEPT.work()
    """,
)
case("a lambda", REMOVES, "X = [1]\nrun = (\n    lambda: X.append(1) or X.pop()  # here\n)")

# --- expiry
for clock, call in (
    ("import time", "time.time()"),
    ("import time", "time.monotonic_ns()"),
    ("from time import perf_counter as tick", "tick()"),
    ("import datetime", "datetime.datetime.now().timestamp()"),
    ("import asyncio; loop = asyncio.new_event_loop(); loop.close()", "loop.time()"),
):
    case(
        f"expires by {call}",
        EXPIRES,
        f"""
        import collections
        {clock}
        X = collections.deque()
        def run():
            now = {call}
            X.append((now, bytes(100)))
            while X and X[0][0] < now - 0.3:
                X.popleft()
        run()
        run()
        """,
    )
case(
    "the caller tells the time",
    EXPIRES,
    """
    import time
    X = {}
    def drop(until):
        for key in [key for key in X if key < until]:
            del X[key]  # here
    def run():
        now = time.monotonic()
        X[now] = 1
        drop(now - 1)
    """,
)
case(
    "the caller compares the time",
    EXPIRES,
    """
    import time
    X = {}
    def drop(key):
        X.pop(key, None)  # here
    def run():
        now = time.monotonic()
        X[now] = 1
        for key in list(X):
            if key < now - 1:
                drop(key)
        drop(0)
    """,
)

case(
    "a method that is kept",
    REMOVES,
    """
    import collections
    class Order:
        def __init__(self):
            self.order = collections.deque([1])
            self.put, self.take = self.order.append, self.order.popleft
        def work(self):
            self.put(1)
            self.take()  # here
    ORDER = Order()
    X = ORDER.order
    def run(): ORDER.work()
    """,
)
case(
    "put in and taken out",
    REMOVES,
    """
    X = set()
    def run(job=1):
        X.add(job)
        X.discard(job)  # here
        X.add(object())
    """,
)
