"""flooding.py WHAT: from the first allocation on it writes WHAT without end and reads nothing more.

``line``: a line that never ends; ``lines``: proper replies without end; ``errors``: standard error, 4 MiB, then proper.
"""

import sys

from speaking import encode, proper_reply, serve, write


def reply(request: str) -> bytes:
    proper = encode(proper_reply(request))
    if " = allocate " not in request:
        return proper
    if sys.argv[1] == "errors":
        sys.stderr.write("noise\n" * 700_000 + "the end\n")
        return proper
    while True:
        write(proper if sys.argv[1] == "lines" else b"x" * 4096)


serve(reply)
