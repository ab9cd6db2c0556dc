"""A function for one thread becomes one for a row of threads, with vectors in place of values and masks of lanes.

The passes in order: ``text`` reads the function as LLVM prints it, ``flow`` finds its blocks and loops, ``shapes``
finds what is the same in all lanes, ``masks`` writes the blocks and ``operations`` their instructions, by ``lines``.
Whatever is not understood raises :class:`~text.NotUnderstood`, and the function stays as it is. ISPC works in this way:
https://pharr.org/matt/assets/ispc.pdf
"""
