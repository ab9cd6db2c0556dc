"""Footprints: which bytes of memory each block of a kernel may use, as far as its text says it.

The compiler writes them into the object. At a launch the runtime puts in what it knows then, parameters and sizes, and
decides whether blocks may run at the same time (``native/kernels/footprints.h``). What is not understood is unknown,
and a kernel with an unknown write runs its blocks one after another.
"""
