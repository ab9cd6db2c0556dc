"""Trial allocators: they know the public contract and nothing of the reference, the oracle or the corpus."""
