"""altered.py FAULT: the small reference behind the protocol, with one thing wrong in what it does with lines.

``none`` is nothing. Whatever breaks is in ``FAULTS`` below; the end of the input and of the process is ``main``'s.
"""

import dataclasses
import os
import sys
import threading
from collections.abc import Callable, Iterator

from quiesce.backends.reference import backend
from quiesce.backends.serving import Json, Served, _write
from quiesce.model.backend import Capability, Description

CLAIMED = frozenset({Capability.MEMORY, Capability.POOL, Capability.CAPACITY, Capability.BACKING_LEDGER})
FAULT = sys.argv[1]


class Small:
    """The reference, as far as it claims little."""

    open = backend().open

    def describe(self) -> Description:
        return dataclasses.replace(backend().describe(), capabilities=CLAIMED, promises=frozenset())


served = Served(Small())


def proper(request: str) -> Json:
    return {"outcome": "done"} if request == "again" else served.reply(request)


def ignoring_words(request: str) -> Json:
    return proper(" ".join(word for word in request.split() if word != "frobnicate"))


def ignoring_options(request: str) -> Json:
    return proper(" ".join(word for word in request.split() if "frobnicate=" not in word))


def knowing_everything(request: str) -> Json:
    return {"outcome": "done"} if request.startswith("frobnicate") else proper(request)


def making_again(request: str) -> Json:
    if " = allocate " in request:
        served.reply("free " + request.split(maxsplit=1)[0])
    return proper(request)


def freeing_anything(request: str) -> Json:
    reply = proper(request)
    return {"outcome": "done"} if request.startswith("free ") and reply["outcome"] == "rejected" else reply


def freeing_twice(request: str) -> Json:
    """Forget what was given back: the first time it is done, and ever after."""
    reply = proper(request)
    if request.startswith("free ") and reply["outcome"] == "done":
        freed.add(request)
    return {"outcome": "done"} if request in freed and reply["outcome"] == "rejected" else reply


def opening_as_at_first(request: str) -> Json:
    if request.startswith("open "):
        opened.append(request)
        request = opened[0]
    return proper(request)


freed: set[str] = set()
opened: list[str] = []
SERVES_AGAIN = ("serves again", "fails after again", "opens again as at first")
FAULTS: dict[str, Callable[[str], Json]] = {
    "ignores words": ignoring_words,
    "ignores options": ignoring_options,
    "knows everything": knowing_everything,
    "makes again": making_again,
    "frees anything": freeing_anything,
    "frees twice": freeing_twice,
    "opens again as at first": opening_as_at_first,
}


def requests() -> Iterator[str]:
    for line in sys.stdin.buffer:
        portion = 4096 if FAULT == "splits lines" else len(line)
        for start in range(0, len(line), portion):
            yield line[start : start + portion].decode().rstrip("\r\n")


def main() -> None:
    reply = FAULTS.get(FAULT, proper)
    again = 0
    for request in requests():
        if request == "quit":
            os._exit(3 if again and FAULT == "fails after again" else 0)
        answer = reply(request)
        if request == "hello 1" and FAULT in SERVES_AGAIN:
            answer = {**answer, "again": True}
        again += request == "again"
        _write(answer, sys.stdout.buffer)
    if FAULT == "outlives":
        threading.Event().wait()


main()
