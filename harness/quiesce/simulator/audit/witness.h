// What was seen, for whoever judges the run: runtime/loads.py reads it and says what each kind is.
#pragma once

/* Write it down, once for each process; `client` is the file that asked. */
void witness(const char *kind, const char *path, const char *client);
