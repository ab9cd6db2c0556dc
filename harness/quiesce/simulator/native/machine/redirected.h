// Objects with a CUDA runtime in them that was redirected to this one.
#pragma once

#include <stdbool.h>

enum { REDIRECTED_MAX = 64 };

struct link_map;

// The first of them; the others are NULL. The loader's module writes it (audit/embedded_version.c).
extern __attribute__((visibility("default"))) const struct link_map *quiesce_redirected[REDIRECTED_MAX];

// Whether an address lies in one.
bool is_redirected(const void *address);
