#include "libraries/computed.h"

#include <string.h>

#include "machine/hidden.h"

enum { CALLS = SETTINGS_MAX, CHANGES };

_Static_assert((int)HOSTED_SETTINGS == (int)CHANGES + 1, "all settings are told");

int library_compute(const char *name, const struct library *library, uint64_t handle, const uint64_t *stream,
                    const uint64_t *words, const double *floats) {
    int answer, own = 0;
    struct library_object *object = object_of_call(name, library, handle, &answer);
    if (!object) return answer;
    struct hosted_call call = {
        .object = object->serial, .device = object->device, .area = HIDDEN(object->hidden_area)};
    memcpy(call.settings, object->values, sizeof object->values);
    call.settings[CALLS] = ++object->calls;
    call.settings[CHANGES] = object->changes;
    memcpy(call.words, words, sizeof call.words);
    memcpy(call.floats, floats, sizeof call.floats);
    uint64_t on = stream ? *stream : HIDDEN(object->hidden_stream);
    enum status status = hosted_launch(name, &call, object->device, on, &own);
    explicit_bzero(&call, sizeof call);  // its addresses are no sign that a client still knows them
    answer = object_leave(library, status);
    if (status == NOT_SUPPORTED) return library->unsupported;
    return answer ? answer : own;
}
