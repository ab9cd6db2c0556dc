"""What native leak checkers say of a program, as findings."""
