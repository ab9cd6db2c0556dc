"""The stages of a leak check: each runs rounds of the tested code, and says what goes on growing."""
