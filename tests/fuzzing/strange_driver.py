"""strange_driver.py SEED: answers as the wire protocol says, for a while; then it sends what its seed makes of that."""

import json
import random
import sys

GENERATOR = random.Random(int(sys.argv[1]))
HELLO = {
    "protocol": 1,
    "name": "strange",
    "version": "1",
    "capabilities": ["memory", "pool"],
    "promises": [],
    "gauges": {"live": ["claim"], "reserved": ["claim", "ledger"]},
}
WORDS = (
    "null",
    "[]",
    "{}",
    "-1",
    "1e999",
    "true",
    '""',
    '"\\ud800"',
    "9" * 5000,
    "[" * 90000,
    "NaN",
    '"\x1b[2J::stop"',
)
sizes: dict[str, int] = {}


def proper(request: str) -> dict[str, object]:
    live = sum(sizes.values())
    if request.startswith("hello"):
        return HELLO
    if request == "gauges":
        return {"gauges": {"live": {"claim": live}, "reserved": {"claim": live, "ledger": live}}}
    if " = allocate" in request:
        name, _, _, size = request.split()
        sizes[name] = int(size)
        return {"outcome": "allocated", "address": hex(GENERATOR.randrange(1 << 20) << 20)}
    sizes.pop(request.removeprefix("free "), None)
    return {"outcome": "done"}


def changed(text: str) -> str:
    places = [place for place, letter in enumerate(text) if letter in ":,[{"]
    place = GENERATOR.choice(places) + 1
    kind = GENERATOR.randrange(6)
    if kind == 0:
        return text[:place]
    if kind == 1:
        return text[:place] + GENERATOR.choice(WORDS)
    if kind == 2:
        return text + "\n" + text * GENERATOR.choice((1, 50))
    if kind == 3:
        sys.stderr.write(GENERATOR.choice(("noise\n", "\0\x1b[2J", "::error::x\n")) * 50_000)
        return text
    if kind == 4:
        return "x" * GENERATOR.choice((1, 5_000_000))
    end = min((found for mark in ",}]" if (found := text.find(mark, place)) > 0), default=place)
    return text[:place] + GENERATOR.choice(WORDS) + text[end:]


proper_ones = GENERATOR.randrange(20)
for number, line in enumerate(sys.stdin):
    if line == "quit\n":
        break
    answer = json.dumps(proper(line.rstrip("\n")))
    if number >= proper_ones and GENERATOR.random() < 0.7:
        if GENERATOR.randrange(12) == 0:
            sys.exit(GENERATOR.choice((0, 1)))
        answer = changed(answer)
    sys.stdout.buffer.write(answer.encode("utf-8", "surrogatepass") + b"\n")
    sys.stdout.buffer.flush()
