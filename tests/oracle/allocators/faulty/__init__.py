"""Allocators with one fault each, written against the public contract from published bug reports of other projects."""
