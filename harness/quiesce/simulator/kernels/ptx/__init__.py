"""The text of PTX: split into functions and variables, and one function at a time parsed to a checked form."""
