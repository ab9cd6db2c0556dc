// Plans of Fourier transforms: what cuFFT, hipFFT and rocFFT have in common.
//
// A plan needs a work area. Its size depends on the vendor's algorithms; here it is that of the transformed elements,
// each as a complex number, which is what an algorithm out of place needs. A plan allocates it by itself unless its
// client chose to (cufftSetAutoAllocation).
#pragma once

#include "libraries/object.h"

// Where one side of a transform has its elements: rooms for lines, planes and cubes, and how far apart elements and
// transforms lie (cuFFT, "Advanced Data Layout").
struct embedding {
    int64_t room[3], stride, distance;
};

struct transform {
    int rank;
    int64_t lengths[3];
    int64_t batch;
    bool is_embedded;  // else the elements follow each other
    struct embedding input, output;
    int types[2];  // of the input and the output
    unsigned element_bytes;  // of a complex number of the transform's precision; 0: no such type
};

// The size of a work area; false: a length, the rank or the batch is none.
bool plan_work_bytes(const struct transform *transform, uint64_t *bytes);

// Fills in the lengths, from integers of 4 or 8 bytes.
struct transform plan_transform(int rank, const void *lengths, bool wide, int64_t batch, unsigned element_bytes);

// "If inembed and onembed are set to NULL, all other stride information is ignored" (cufftPlanMany).
struct transform plan_embed(struct transform transform, bool wide, const void *input, int64_t input_stride,
                            int64_t input_distance, const void *output, int64_t output_stride,
                            int64_t output_distance);
