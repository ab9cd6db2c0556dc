"""Modules whose code says no number for a container: it asks for entries, takes them out, or does neither.

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
    "X = X[1:]",
    "X = [each for each in X if each > 1]",
    "X = []",
    "old, X = X, []",
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

case("moved", NONE, "X = {1: 2}\ndef run():\n    X[1] = X.pop(1)\n    X[object()] = 1")
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
