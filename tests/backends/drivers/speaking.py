"""What every driver here needs in order to speak the wire protocol properly until it misbehaves."""

import json
import sys
from collections.abc import Callable

Json = dict[str, object]

HELLO: Json = {
    "protocol": 1,
    "name": "test driver",
    "version": "1.0",
    "capabilities": ["memory", "backing-ledger"],
    "promises": ["exact-footprint"],
    "gauges": {"live": ["claim"], "reserved": ["claim", "ledger"]},
}


def proper_reply(request: str) -> Json:
    """Answer like a driver that has nothing to say."""
    if request.startswith("hello"):
        return HELLO
    if request == "gauges":
        return {"gauges": {"live": {"claim": 0}, "reserved": {"claim": 0, "ledger": 0}}}
    if " = allocate " in request:
        return {"outcome": "allocated", "address": "0x1000"}
    return {"outcome": "done"}


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def serve(reply: Callable[[str], bytes]) -> None:
    """Answer every line until ``quit`` or the end of the input."""
    for line in sys.stdin:
        request = line.rstrip("\n")
        if request == "quit":
            return
        write(reply(request))


def encode(reply: Json) -> bytes:
    return json.dumps(reply).encode() + b"\n"
