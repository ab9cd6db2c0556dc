"""Proper, without an allocator: requests show on standard error, observations are told in portions."""

import os
import sys

from speaking import HELLO, Json, encode, proper_reply, serve

PORTION = 100


class Obedient:
    def __init__(self) -> None:
        self.untold: list[Json] = []

    def reply(self, request: str) -> bytes:
        sys.stderr.write(request + "\n")
        reply = dict(proper_reply(request))
        if request.startswith("hello"):
            reply = {**HELLO, "version": os.environ.get("DRIVER_VERSION", "1.0")}
        elif request == "more":
            reply = {}
        elif request == "trim":
            self.untold = [{"seen": "backing-freed", "address": hex(4096 + n), "size": 1} for n in range(250)]
        elif request == "close":
            self.untold = [{"seen": "backing-freed", "address": "0x1000", "size": 64}]
        elif request == "initialize":
            reply = {"outcome": "rejected", "code": "already-initialized"}
        elif request == "finalize":
            reply = {"outcome": "unsupported", "reason": "no lifecycle"}
        elif request == "collect":
            reply = {"outcome": "out of memory"}
        if self.untold:
            reply["observations"] = self.untold[:PORTION]
            self.untold = self.untold[PORTION:]
            reply["more"] = bool(self.untold)
        return encode(reply)


serve(Obedient().reply)
