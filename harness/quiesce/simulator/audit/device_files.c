#include "device_files.h"

#include <sys/stat.h>

#include "dynamic_symbols.h"
#include "run.h"
#include "system.h"

/* JAX looks whether one of them exists, and loads no plugin otherwise (jax/_src/hardware_utils.py). Nothing opens them:
   who talks to a device does so through the driver's library, which is the simulated one. */
static const char *const files[] = {"/dev/nvidia0", "/dev/nvidiactl"};

enum { MAJOR = 195, CONTROL_MINOR = 255, MODE = 0666 };  // Documentation/admin-guide/devices.txt of Linux

static int (*real_stat)(const char *, struct stat *), (*real_lstat)(const char *, struct stat *);
static int (*real_old_stat)(int, const char *, struct stat *), (*real_access)(const char *, int);
static int (*real_stat_at)(int, const char *, struct stat *, int), (*real_access_at)(int, const char *, int, int);
static int (*real_extended)(int, const char *, int, unsigned, struct statx *);

/* Return the minor number of a device's file, -1 for any other. */
static int minor_of(const char *path) {
    if (!path || !begins_with(path, "/dev/nvidia")) return -1;
    return is_same(path, files[0]) ? 0 : is_same(path, files[1]) ? CONTROL_MINOR : -1;
}

static int describe(int minor, struct stat *found) {
    *found = (struct stat){.st_mode = S_IFCHR | MODE, .st_nlink = 1, .st_rdev = MAJOR << 8 | (unsigned)minor};
    return 0;
}

static int stat_here(const char *path, struct stat *found) {
    int minor = minor_of(path);
    return minor < 0 ? real_stat(path, found) : describe(minor, found);
}

static int lstat_here(const char *path, struct stat *found) {
    int minor = minor_of(path);
    return minor < 0 ? real_lstat(path, found) : describe(minor, found);
}

static int old_stat_here(int version, const char *path, struct stat *found) {
    int minor = minor_of(path);
    return minor < 0 ? real_old_stat(version, path, found) : describe(minor, found);
}

static int stat_at_here(int folder, const char *path, struct stat *found, int flags) {
    int minor = minor_of(path);
    return minor < 0 ? real_stat_at(folder, path, found, flags) : describe(minor, found);
}

static int extended_here(int folder, const char *path, int flags, unsigned mask, struct statx *found) {
    int minor = minor_of(path);
    if (minor < 0) return real_extended(folder, path, flags, mask, found);
    *found = (struct statx){.stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK,
                            .stx_nlink = 1,
                            .stx_mode = S_IFCHR | MODE,
                            .stx_rdev_major = MAJOR,
                            .stx_rdev_minor = (unsigned)minor};
    return 0;
}

static int access_here(const char *path, int mode) { return minor_of(path) < 0 ? real_access(path, mode) : 0; }

static int access_at_here(int folder, const char *path, int mode, int flags) {
    return minor_of(path) < 0 ? real_access_at(folder, path, mode, flags) : 0;
}

void device_files_follow(struct link_map *c_library) {
    const struct {
        const char *name;
        void *here, *real;
    } rows[] = {
        {"stat", stat_here, &real_stat},
        {"stat64", stat_here, &real_stat},
        {"lstat", lstat_here, &real_lstat},
        {"lstat64", lstat_here, &real_lstat},
        {"__xstat", old_stat_here, &real_old_stat},  // what glibc before 2.33 has under these names
        {"__xstat64", old_stat_here, &real_old_stat},
        {"fstatat", stat_at_here, &real_stat_at},
        {"fstatat64", stat_at_here, &real_stat_at},
        {"statx", extended_here, &real_extended},
        {"access", access_here, &real_access},
        {"faccessat", access_at_here, &real_access_at},
    };
    dynamic_symbols table;
    if (!run_is_of_cuda() || !dynamic_symbols_unlock(&table, c_library)) return;
    for (size_t each = 0; each < sizeof rows / sizeof *rows; each++) {
        ElfW(Addr) real = dynamic_symbols_replace(&table, rows[each].name, (ElfW(Addr))rows[each].here);
        if (real) *(ElfW(Addr) *)rows[each].real = real;
    }
    dynamic_symbols_lock(&table);
}
