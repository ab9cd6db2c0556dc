"""The oracle: its own model of what a sequence did, fed by what was observed, and the rules that judge it.

It imports no backend and not the reference. Bottom to top: ``intervals`` and ``clocks`` are data structures;
``model`` holds what is known; ``permits`` says which outcomes are allowed; ``rules`` holds the rules by name.
"""
