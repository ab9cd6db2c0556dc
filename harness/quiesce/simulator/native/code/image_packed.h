// Code that is compressed in a fatbin: as LZ4 blocks until CUDA 12, as Zstandard frames since then.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The options of a fatbin's entry that say so (as n-eiling/cuda-fatbin-decompression has it; nvcc 13 was tried).
enum { PACKED_LZ4 = 0x2000, PACKED_ZSTANDARD = 0x8000 };

// Unpacks into exactly `room` bytes. False: the content is damaged, or no library of the system can read its format.
bool image_unpack(uint64_t options, const char *from, size_t bytes, char *to, size_t room);
