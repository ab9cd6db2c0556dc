#include "libraries/object.h"

#include <stdlib.h>

#include "ledger/handle.h"
#include "libraries/fft_callbacks.h"
#include "lifetime/runtime.h"
#include "machine/device.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "machine/upcalls.h"
#include "memory/memory.h"
#include "memory/places.h"
#include "order/context.h"
#include "order/driver_context.h"
#include "order/stream.h"
#include "order/stream_handles.h"

enum status object_enter(const char *function) {
    enum status status = runtime_enter(function);
    if (status || settings.flavour == FLAVOUR_HIP) return status ? status : context_error();
    driver_initialized = true;  // they call the runtime, which makes the primary context current
    driver_make_context();
    return context_error();
}

static int answer_of(const struct library *library, enum status status) {
    switch (status) {
        case OK: return 0;
        case OUT_OF_MEMORY: return library->no_memory;
        case NOT_INITIALIZED:
        case INVALID_HANDLE: return library->no_object;
        case INVALID_VALUE: return library->wrong;
        default: return library->failed;
    }
}

int object_leave(const struct library *library, enum status status) {
    runtime_leave_to_driver(status);
    return answer_of(library, status);
}

// -- workspaces ------------------------------------------------------------------------------------------------------

static void give_workspace(struct library_object *object) {
    if (!object->workspace) return;
    struct live *entry = ledger_live(memory_live_at(object->workspace));
    entry->part = false;
    if (memory_free(THING_DEVICE, THING_DEVICE, object->workspace)) entry->part = true;  // a device that is broken
    object->workspace = object->workspace_bytes = 0;
}

enum status object_take_workspace(struct library_object *object, uint64_t bytes) {
    give_workspace(object);
    enum status status = memory_allocate(THING_DEVICE, object->device, bytes, 0, &object->workspace);
    if (status || !bytes) return status;
    ledger_live(memory_live_at(object->workspace))->part = true;  // nobody else gives it back
    object->workspace_bytes = bytes;
    return OK;
}

// -- lifetimes -------------------------------------------------------------------------------------------------------

enum status object_make(const struct library *library, uint64_t *handle) {
    struct library_object *object = calloc(1, sizeof *object);
    if (!object) return OUT_OF_MEMORY;
    upcalls.libraries.end_object = object_end;
    *object = (struct library_object){
        .library = library, .device = device_current(), .hidden_stream = HIDDEN(0), .hidden_area = HIDDEN(0)};
    for (unsigned i = 0; i < SETTINGS_MAX; i++) object->values[i] = library->first_values[i];
    enum status status = object_take_workspace(object, library->workspace_bytes);
    *handle = status ? 0 : handle_make(library->thing, object, object->device, &object->serial, false);
    if (*handle) {
        object->hidden_handle = HIDDEN(*handle);
        return OK;
    }
    give_workspace(object);
    free(object);
    return status ? status : OUT_OF_MEMORY;
}

struct library_object *object_find(const struct library *library, uint64_t handle) {
    struct library_object *object = handle_find(library->thing, handle);
    bool is_its = object && (object->library == library || object->library == library->also);
    return is_its ? object : NULL;
}

void object_end(struct library_object *object) {
    give_workspace(object);
    fft_callbacks_delete(object->callbacks);
    handle_drop(HIDDEN(object->hidden_handle));
    free(object);
}

int object_create(const char *function, const struct library *library, void **handle) {
    enum status status = object_enter(function);
    if (!status && !handle) status = INVALID_VALUE;
    uint64_t made = 0;
    if (!status) status = object_make(library, &made);
    if (!status) *handle = (void *)made;
    return object_leave(library, status);
}

struct library_object *object_of_call(const char *function, const struct library *library, uint64_t handle,
                                      int *answer) {
    enum status status = object_enter(function);
    struct library_object *object = status ? NULL : object_find(library, handle);
    if (!object) *answer = object_leave(library, status ? status : INVALID_HANDLE);
    return object;
}

int object_destroy(const char *function, const struct library *library, void *handle) {
    int answer;
    struct library_object *object = object_of_call(function, library, (uint64_t)handle, &answer);
    if (!object) return answer;
    enum status status = library->waits ? stream_finish_device(object->device) : OK;
    object = object_find(library, (uint64_t)handle);  // a host function may have ended it meanwhile
    if (object) object_end(object);
    return object_leave(library, object ? status : INVALID_HANDLE);
}

// -- streams ---------------------------------------------------------------------------------------------------------

// A stream that was destroyed is seen here; the libraries' documents name no status for one, so that is their caller's
// answer. The numbers 0 to 2 are default streams.
enum status object_check_stream(const struct library_object *object, uint64_t stream) {
    return stream_find(stream, object->device, false) ? OK : INVALID_VALUE;
}

int object_set_stream(const char *function, const struct library *library, void *handle, void *stream) {
    int answer;
    struct library_object *object = object_of_call(function, library, (uint64_t)handle, &answer);
    if (!object) return answer;
    enum status status = object_check_stream(object, (uint64_t)stream);
    if (!status) object->hidden_stream = HIDDEN((uint64_t)stream);
    bool resets = library->thing == THING_BLAS_HANDLE;  // "the … workspace back to the default" (cublasSetStream)
    if (!status && resets) object->hidden_area = HIDDEN(0);
    return object_leave(library, status);
}

int object_get_stream(const char *function, const struct library *library, void *handle, void **stream) {
    int answer;
    struct library_object *object = object_of_call(function, library, (uint64_t)handle, &answer);
    if (!object) return answer;
    if (stream) *stream = (void *)HIDDEN(object->hidden_stream);
    return object_leave(library, stream ? OK : INVALID_VALUE);
}

// -- settings --------------------------------------------------------------------------------------------------------

int object_set(const char *function, const struct library *library, void *handle, unsigned setting, int64_t value,
               int64_t value_max) {
    int answer;
    struct library_object *object = object_of_call(function, library, (uint64_t)handle, &answer);
    if (!object) return answer;
    bool fits = value >= 0 && value <= value_max;
    if (fits) {
        object->values[setting] = value;
        object->changes++;
        object->calls = 0;
    }
    return object_leave(library, fits ? OK : INVALID_VALUE);
}

int object_get(const char *function, const struct library *library, void *handle, unsigned setting, int *value) {
    int answer;
    struct library_object *object = object_of_call(function, library, (uint64_t)handle, &answer);
    if (!object) return answer;
    if (value) *value = (int)object->values[setting];
    return object_leave(library, value ? OK : INVALID_VALUE);
}

int object_set_area(const char *function, const struct library *library, void *handle, void *area, size_t bytes) {
    int answer;
    struct library_object *object = object_of_call(function, library, (uint64_t)handle, &answer);
    if (!object) return answer;
    enum status status = memory_check((uint64_t)area, bytes);
    if (!status) object->hidden_area = HIDDEN((uint64_t)area);
    if (!status) object->area_bytes = bytes;
    return object_leave(library, status);
}
