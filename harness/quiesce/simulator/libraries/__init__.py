"""Functions of vendors' libraries that compute: rows of a table, run with NumPy and SciPy in a process of its own.

``native/kernels/hosted.c`` talks to that process. Nothing of it runs in a client.
"""
