"""recording.py FILE [AGAIN [GAUGES]]: proper; it writes every line that it reads to FILE, byte by byte.

It tells two observations of each request but one after the other, and ends its lines in a carriage return too.
"""

import json
import sys
from pathlib import Path

from speaking import HELLO, proper_reply, write

GAUGES = json.loads(sys.argv[3]) if len(sys.argv) > 3 else HELLO["gauges"]
AGAIN = len(sys.argv) > 2 and sys.argv[2] == "again"
SEEN = [{"seen": "backing-refused", "size": size} for size in (1, 2)]

with Path(sys.argv[1]).open("ab") as record:
    for line in sys.stdin.buffer:
        record.write(line)
        record.flush()
        request = line.decode().rstrip("\n")
        if request == "quit":
            break
        reply = dict(proper_reply(request))
        if request == "hello 1":
            reply = {**HELLO, "gauges": GAUGES, "again": AGAIN}
        elif request == "more":
            reply = {"observations": SEEN[1:]}
        elif "outcome" in reply and request != "again":
            reply = {**reply, "observations": SEEN[:1], "more": True}
        write(json.dumps(reply).encode() + b"\r\n")
