"""Find memory bugs, with or without a GPU; what an installation offers is in README.md."""

from quiesce.marking import mark as mark
