"""Allocators written against the public contract alone: their device and their adapter know no other test's."""
