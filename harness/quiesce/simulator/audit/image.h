// An ELF file, read as far as the loader would.
#pragma once

#include <elf.h>

enum { SEGMENTS_MAX = 64, SONAME_BYTES = 256 };

typedef struct {
    int file;
    Elf64_Ehdr header;
    Elf64_Phdr segments[SEGMENTS_MAX];
} image;

// Open a file; 0, with nothing open, where it is no ELF file of 64 bits.
int image_open(image *from, const char *path);
void image_close(image *from);

// Read the SONAME; 0 where it has none.
int image_soname(const image *from, char soname[SONAME_BYTES]);
