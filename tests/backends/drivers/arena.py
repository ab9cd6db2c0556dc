"""arena.py SIZE [HELLO]: proper; at ``open`` it takes and tells an arena of SIZE bytes, where every block begins.

HELLO replaces keys of its hello. It tells one observation a line, so that each reply but the last has ``more``.
"""

import json
import sys

from speaking import HELLO, Json, encode, proper_reply, serve

ADDRESS = "0x100000"
SIZE = int(sys.argv[1])
CHANGES = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}


class Arena:
    def __init__(self) -> None:
        self.untold: list[Json] = []

    def reply(self, request: str) -> bytes:
        reply = dict(proper_reply(request))
        if request.startswith("hello"):
            reply = {**HELLO, **CHANGES}
        elif request.startswith("open"):
            refused: Json = {"seen": "backing-refused", "size": SIZE + 1}
            self.untold = [refused, {"seen": "backing-allocated", "address": ADDRESS, "size": SIZE}]
        elif request == "more":
            reply = {}
        elif " = allocate " in request:
            reply["address"] = ADDRESS
        elif request == "close":
            self.untold = [{"seen": "backing-freed", "address": ADDRESS, "size": SIZE}]
        if self.untold:
            told, self.untold = self.untold[:1], self.untold[1:]
            reply.update({"observations": told, "more": bool(self.untold)})
        return encode(reply)


serve(Arena().reply)
