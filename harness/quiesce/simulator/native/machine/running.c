#include "machine/running.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool process_is_running(uint32_t process) {
    char path[64], status[512];
    snprintf(path, sizeof path, "/proc/%u/stat", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t length = read(file, status, sizeof status - 1);
    close(file);
    if (length <= 0) return false;
    status[length] = 0;
    const char *state = strrchr(status, ')');  // after the name, which may have any bytes (proc_pid_stat(5))
    return state && strncmp(state, ") Z", 3) && strncmp(state, ") X", 3);
}
