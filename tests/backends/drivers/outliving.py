"""outliving.py ALIVE: proper; it holds the FIFO ALIVE open while it lives, and says there if its input ends."""

import os
import sys

from speaking import encode, proper_reply, write

alive = -1
for line in sys.stdin:
    request = line.rstrip("\n")
    if request == "quit":
        sys.exit(0)
    if request.startswith("open"):
        alive = os.open(sys.argv[1], os.O_WRONLY)
    write(encode(proper_reply(request)))
os.write(alive, b"outlived")
