"""Subjects: real upstream releases under test, with what each is expected to show.

Bottom-up: ``manifest`` holds values, ``parser`` reads them, ``catalogue`` finds them; ``storage`` keeps what was made,
``commands`` and ``build`` make it; ``driver`` and ``programs`` run it; ``row`` runs one release in one variant and
compares it with what is expected, ``schedule`` runs several rows at once, ``matrix`` writes them down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiesce.doors import lazy_names

if TYPE_CHECKING:
    from quiesce.subjects.manifest import Subject as Subject
    from quiesce.subjects.matrix import Matrix as Matrix
    from quiesce.subjects.row import Row as Row
    from quiesce.subjects.row import RowResult as RowResult
    from quiesce.subjects.row import result_names as result_names
    from quiesce.subjects.row import rows_of as rows_of
    from quiesce.subjects.schedule import Ended as Ended
    from quiesce.subjects.schedule import Unready as Unready
    from quiesce.subjects.schedule import run_rows as run_rows
else:  # type checkers refuse a name that is not above
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "manifest": "Subject",
            "matrix": "Matrix",
            "row": "Row RowResult result_names rows_of",
            "schedule": "Ended Unready run_rows",
        },
    )
