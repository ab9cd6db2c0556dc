"""Tests of the oracle, and allocators that were written against the public contract alone to try it on."""
