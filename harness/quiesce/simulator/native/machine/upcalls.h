// What lower floors ask of higher ones. A file calls its own floor and those below it by name, and a higher one through
// this alone: the part of a floor is filled by that floor, before anything asks for it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"

struct kernel_call;
struct library_object;
struct ptx;
struct source;

struct upcalls {
    struct order_upcalls {
        // Waits for a device as a free does, which a relaxed capture does not forbid.
        enum status (*finish_device)(unsigned device);
        // Whether captures forbid an allocation, a free or the query of an event.
        enum status (*forbid_unsafe)(void);
        // Memory of the client's own is no longer registered: its pages are left alone.
        void (*leave_alone)(uint64_t start, uint64_t size_bytes);
    } order;
    struct kernels_upcalls {
        // A launch of a kernel that computes, as queues and graphs hold it; NULL: nothing computes.
        void (*keep_call)(struct kernel_call *call);
        void (*drop_call)(struct kernel_call *call);
        // Runs it. A kernel that does not come to its end breaks the context of its device. `number`: of its
        // observation.
        void (*run_call)(const struct kernel_call *call, uint64_t number);
        // Calls `see` with each word of its arguments that may be an address.
        void (*see_arguments)(const struct kernel_call *call, void (*see)(uint64_t address));
        // Writes the first value of a variable, which has memory on the device, where only the compiler can tell it:
        // addresses of variables and functions, numbers that have to be rounded. False: it can't be told.
        bool (*write_initial)(const struct source *source, const char *variable, unsigned device);
        // The text of PTX, which may be packed, without the bodies of functions. It ends with a NUL and is the
        // caller's; NULL: it can't be had.
        char *(*declarations)(const struct ptx *ptx);
    } kernels;
    struct libraries_upcalls {
        void (*end_object)(struct library_object *object);  // a reset destroys it, too
    } libraries;
};

extern struct upcalls upcalls;
