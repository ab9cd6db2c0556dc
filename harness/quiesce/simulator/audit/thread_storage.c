#include "thread_storage.h"

#include "image.h"
#include "run.h"
#include "system.h"

/* Where there is a module, the loader lays out static thread-local storage before it opens the libraries that the
   program needs; they must fit into a fixed surplus then, as libraries that are opened later always must (glibc's
   elf/rtld.c, init_tls). Most have none; allocators, compilers' sanitizers and rustc have much: "cannot allocate memory
   in static TLS block". */

enum { USUAL_BYTES = 512 };  // glibc.rtld.optional_static_tls, where nobody sets it

static size_t taken_bytes;

// Return the room that the run's environment asks of the loader: harness/quiesce/simulator/runtime/launch.py.
static size_t room_bytes(void) {
    char path[PATH_BYTES] = "", digits[16];
    size_t room = 0;
    if (!append(path, sizeof path, run_folder()) || !append(path, sizeof path, "/room")) return USUAL_BYTES;
    int file = open_file(path, O_RDONLY);
    if (file < 0) return USUAL_BYTES;
    long length = read_at(file, digits, sizeof digits, 0);
    close_file(file);
    for (long each = 0; each < length && digits[each] >= '0' && digits[each] <= '9'; each++)
        room = room * 10 + (size_t)(digits[each] - '0');
    return room;
}

static int is_static(const struct link_map *map) {
    for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_FLAGS) return (entry->d_un.d_val & DF_STATIC_TLS) != 0;
    return 0;
}

int thread_storage_is_short(const struct link_map *map) {
    if (!is_static(map) || begins_with(base_name(map->l_name), "libc.so.")) return 0;  // the C library's is set aside
    image of;
    if (!image_open(&of, map->l_name)) return 0;
    for (int each = 0; each < of.header.e_phnum; each++)
        if (of.segments[each].p_type == PT_TLS) taken_bytes += of.segments[each].p_memsz + of.segments[each].p_align;
    image_close(&of);
    return taken_bytes > room_bytes();
}
