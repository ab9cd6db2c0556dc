"""``python -m quiesce`` does the same as the command ``quiesce``, also where its folder is not on the path."""

from __future__ import annotations

import sys

from quiesce.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
