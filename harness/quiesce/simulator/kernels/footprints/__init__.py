"""Footprints: which bytes of memory each block of a kernel may use, as far as its text says it.

The compiler writes them into the object. At a launch the runtime puts in what it knows then, parameters and sizes, and
decides whether blocks may run at the same time (``native/kernels/footprints.h``). An instruction that the compiler
does not follow has no footprint, and where that one writes, blocks run one after another.
"""
