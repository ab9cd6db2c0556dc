/* The run that this process belongs to: its folder. */
#pragma once

#include <stddef.h>

enum { PATH_BYTES = 4096, RUN_VARIABLES = 4 };

/* Read the environment that the process was started with. */
void run_find(void);

/* The run's folder; empty where the process belongs to no run, and nothing is to be done. */
const char *run_folder(void);

// Say whether its devices are CUDA's.
int run_is_of_cuda(void);

/* Say whether a path is that of a file in the run's folder. */
int run_has(const char *path);

/* The path of the run's library whose name is the two parts: 0 where it is too long. */
int run_library(char path[PATH_BYTES], const char *beginning, const char *name);

/* Return a variable that leads to the run, as this process was started with it, the settings first; empty if without.
   Its name with the '=' has so many bytes. */
const char *run_variable(int which, size_t *name_bytes);
