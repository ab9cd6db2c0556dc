"""Allocators put to the test: cases, the reference, the oracle, generated sequences and conformance."""
