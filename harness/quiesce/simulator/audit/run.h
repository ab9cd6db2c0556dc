/* The run that this process belongs to: its folder. */
#pragma once

enum { PATH_BYTES = 4096 };

/* Read the environment that the process was started with. */
void run_find(void);

/* The run's folder; empty where the process belongs to no run, and nothing is to be done. */
const char *run_folder(void);

/* The run's file of that name, below its folder "lib": 0 where the path is too long. */
int run_library(char path[PATH_BYTES], const char *name);
