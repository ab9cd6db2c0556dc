"""Kernels that compute: PTX, the documented virtual instruction set of NVIDIA's devices, compiled for the processor.

``ptx`` reads the text, ``translation`` turns one kernel into LLVM's language, ``compiler`` makes machine code of that.
The runtime in ``simulator/native/kernels`` loads the code and runs it. Nothing outside this package needs LLVM.
"""
