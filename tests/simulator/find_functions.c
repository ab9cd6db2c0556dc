/* Prints the functions of a CUDA runtime that the loader's module finds in a file, which is mapped as the loader does
   it and not relocated: find_functions (symbols|names|time) FILE. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "embedded_names.h"
#include "embedded_symbols.h"
#include "embedded_version.h"

static embedded_functions found;
static object in;
static struct link_map map;

static void map_whole(const char *path) {
    image from;
    if (!image_open(&from, path)) exit(2);
    ElfW(Addr) end = 0;
    int is_fixed = from.header.e_type == ET_EXEC;
    for (int each = 0; each < from.header.e_phnum; each++) {
        const Elf64_Phdr *segment = &from.segments[each];
        ElfW(Addr) last = segment->p_vaddr + segment->p_memsz;
        if (segment->p_type == PT_LOAD && last > end) end = last;
    }
    void *room = is_fixed ? NULL : mmap(NULL, end + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map = (struct link_map){.l_addr = (ElfW(Addr))room, .l_name = (char *)path};
    for (int each = 0; each < from.header.e_phnum; each++) {
        const Elf64_Phdr *segment = &from.segments[each];
        ElfW(Addr) into_page = segment->p_vaddr & 4095, at = map.l_addr + segment->p_vaddr - into_page;
        if (segment->p_type == PT_DYNAMIC) map.l_ld = (void *)(map.l_addr + segment->p_vaddr);
        if (segment->p_type == PT_LOAD && segment->p_filesz)
            mmap((void *)at, segment->p_filesz + into_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, from.file,
                 (off_t)(segment->p_offset - into_page));
    }
    image_close(&from);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

int main(int count, char **words) {
    if (count != 3) return 2;
    map_whole(words[2]);
    if (!object_describe(&in, &map, words[2])) return 2;
    mapped_file file = {NULL, 0};
    const char *wrong = NULL;
    double before = now();
    if (strcmp(words[1], "symbols"))
        embedded_by_names(&in, &found, &wrong);
    else if (mapped_file_open(&file, words[2]))
        embedded_by_symbols(&file, &found);
    if (!strcmp(words[1], "time")) return printf("%.1f ms, %d functions\n", now() - before, found.count) < 0;
    if (found.count && !wrong) wrong = embedded_check(&found);
    if (wrong) return puts(wrong), 1;
    for (int each = 0; each < found.count; each++)
        printf("%lx %s\n", (unsigned long)found.functions[each].address, found.functions[each].name);
    printf("%d\n", found.count ? embedded_version_of(&in, &found) : 0);
    return 0;
}
