/* Which libraries are a vendor's runtime, driver or compiler, and which of the run's own stands for each. */
#pragma once

/* Read the run's table, which harness/quiesce/simulator/runtime/flavours.py writes. */
void served_read(void);

/* COMPILER: one whose results are to be other than on a device, and that needs the vendor's own.
   FOLLOWED: a runtime of another flavour, which the machine takes if the program opens that first. */
typedef enum { NO_RUNTIME, SERVED, NOT_SERVED, FOLLOWED, COMPILER } service;

/* Say what a library is by its name, which may have a folder before it; give the name of the one that stands for it. */
service served_as(const char *name, const char **stands_in);

/* The same for the file at a path, by the SONAME in it. */
service served_by_content(const char *path, const char **stands_in);
