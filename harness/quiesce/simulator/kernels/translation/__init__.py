"""One kernel in the language of LLVM: a file for each chapter of PTX, and the shape of the whole."""
