// The source of a program that NVRTC compiles, which no file holds later: it goes along with the PTX, as comments, so
// that a finding about the kernel can show the line. Clients that keep compiled code on disk keep it too.
//
// A comment is "// quiesce-source NAME TEXT", both in Base64 (quiesce.simulator.kernels.ptx.module).
#pragma once

#include <stddef.h>

struct source_texts;

// Copies a program's source and its headers, as many as fit. NULL: none.
struct source_texts *source_texts_keep(const char *source, const char *name, int count, const char *const *headers,
                                       const char *const *names);
void source_texts_delete(struct source_texts *texts);

// Writes the comments of those that a PTX names. Returns how many bytes they take; `to` may be NULL.
size_t source_texts_note(const struct source_texts *texts, const char *ptx, char *to);
