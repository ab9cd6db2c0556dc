"""A file for each chapter of PTX: how an instruction becomes LLVM's language; ``table`` says which."""
