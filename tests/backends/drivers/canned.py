"""canned.py REQUEST ANSWER [UNIT COUNT TAIL]: proper, but lines that begin with REQUEST get the bytes of ANSWER.

Python's escapes are understood; COUNT times UNIT and TAIL are written behind it.
"""

import sys

from speaking import encode, proper_reply, serve


def unescape(text: str) -> bytes:
    return text.encode("ascii").decode("unicode_escape").encode("latin-1")


request_start, answer, *repeated = sys.argv[1:]
written = unescape(answer)
if repeated:
    unit, count, tail = repeated
    written += unit.encode() * int(count) + unescape(tail)

serve(lambda request: written if request.startswith(request_start) else encode(proper_reply(request)))
