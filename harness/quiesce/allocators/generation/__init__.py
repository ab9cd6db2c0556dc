"""Generated sequences: bytes are decoded into operations, run in lockstep, shrunk and saved as a case.

Bottom to top: ``things`` and ``ordering`` are data; ``state`` knows what a sequence owns; ``legality`` says which
operation is the sequence's own mistake; ``rules_…`` propose operations; ``weights`` chooses among them; ``decoder``
turns bytes into a sequence; ``strategies`` (Hypothesis) and ``bulk`` supply the bytes; ``coverage`` counts what was
reached; ``shrinking`` and ``saving`` make a case of what was found; ``campaign`` does all of it.
"""
