// User objects: what a client wants to live as long as the graphs that use it, counted by references.
//
// The references that a client owns are the handle that it has to give back; those of graphs are the graphs' own. "The
// object's destructor is invoked if the reference count reaches zero" (cudaUserObjectRelease): on the thread of host
// functions, and nobody can wait for it (cudaUserObjectNoDestructorSync). The references of an executable graph go once
// it was destroyed and its launches are over (CUDA C++ Programming Guide, "CUDA User Objects").
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"

// Makes one, of whose references the client owns `count`.
enum status user_object_create(void (*destroy)(void *data), void *data, uint64_t count, uint64_t *handle);

// More or fewer references of the client's own. "It is undefined behavior to release references not owned by the
// caller": here it is refused, and observed as the use of a handle that is gone.
enum status user_object_retain(uint64_t handle, uint64_t count);
enum status user_object_release(uint64_t handle, uint64_t count);

struct user_objects;  // those that a graph holds; launches that are under way share them. NULL: none

// References for a graph: new ones, or (`moves`) some of the client's.
enum status user_objects_retain(struct user_objects **held, uint64_t handle, uint64_t count, bool moves);
enum status user_objects_release(struct user_objects **held, uint64_t handle, uint64_t count);

// As many references again, for a graph made of another one. Where it fails nothing was added.
enum status user_objects_add(struct user_objects **held, const struct user_objects *others);

struct user_objects *user_objects_keep(struct user_objects *held);
void user_objects_drop(struct user_objects *held);

// Before the machine is closed: no destructor runs any more, as in a process that exits, and no reference is the
// client's.
void user_objects_close(void);
