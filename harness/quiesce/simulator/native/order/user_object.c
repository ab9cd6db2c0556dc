#include "order/user_object.h"

#include <stdlib.h>

#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/device.h"
#include "machine/hidden.h"
#include "order/host_thread.h"

struct user_object {
    uint64_t hidden_handle, serial;  // see hidden.h
    uint64_t references;             // of everybody
    uint64_t owned;                  // of them the client's
    struct task *destruction;        // made beforehand: when the last reference goes nothing may fail; NULL: none runs
};

struct user_objects {
    unsigned sharers;
    struct held {
        struct held *next;
        struct user_object *object;
        uint64_t count;
    } *first;
};

// -- references ------------------------------------------------------------------------------------------------------

enum status user_object_create(void (*destroy)(void *), void *data, uint64_t count, uint64_t *handle) {
    struct user_object *object = calloc(1, sizeof *object);
    if (!object) return OUT_OF_MEMORY;
    object->references = object->owned = count;
    object->destruction = host_thread_prepare(&(struct host_call){.function = destroy, .data = data});
    *handle = object->destruction
                  ? handle_make(THING_USER_OBJECT, object, device_current(), &object->serial, false)
                  : 0;
    if (!*handle) {
        host_thread_forget(object->destruction);
        free(object);
        return OUT_OF_MEMORY;
    }
    object->hidden_handle = HIDDEN(*handle);
    return OK;
}

static void drop(struct user_object *object, uint64_t count) {
    object->references -= count;
    if (object->references) return;
    handle_drop(HIDDEN(object->hidden_handle));
    if (object->destruction) host_thread_give(object->destruction);
    free(object);
}

static struct user_object *find(uint64_t handle) { return handle_find(THING_USER_OBJECT, handle); }

// The client has fewer references. Once it has none, the object is the graphs', and nobody has to give it back.
static bool take_from_client(struct user_object *object, uint64_t count) {
    if (count > object->owned) {
        ledger_see_wrong((struct observation){.seen = SEEN_DEAD_HANDLE,
                                        .thing = THING_USER_OBJECT,
                                        .stack = stack_of_call(),
                                        .address = HIDDEN(object->hidden_handle),
                                        .object = object->serial});
        return false;
    }
    object->owned -= count;
    if (!object->owned) handle_disown(HIDDEN(object->hidden_handle));
    return true;
}

enum status user_object_retain(uint64_t handle, uint64_t count) {
    struct user_object *object = find(handle);
    if (!object) return INVALID_VALUE;
    if (!object->owned && !handle_own(handle, device_current())) return OUT_OF_MEMORY;
    object->owned += count;
    object->references += count;
    return OK;
}

enum status user_object_release(uint64_t handle, uint64_t count) {
    struct user_object *object = find(handle);
    if (!object || !take_from_client(object, count)) return INVALID_VALUE;
    drop(object, count);
    host_thread_wait();
    return OK;
}

// -- of graphs -------------------------------------------------------------------------------------------------------

static struct held **place_of(struct user_objects *held, const struct user_object *object) {
    struct held **place = &held->first;
    while (*place && (*place)->object != object) place = &(*place)->next;
    return place;
}

static bool hold(struct user_objects **held, struct user_object *object, uint64_t count) {
    if (!*held) *held = calloc(1, sizeof **held);
    if (!*held) return false;
    if (!(*held)->sharers) (*held)->sharers = 1;
    struct held **place = place_of(*held, object);
    if (!*place) *place = calloc(1, sizeof **place);
    if (!*place) return false;
    (*place)->object = object;
    (*place)->count += count;
    return true;
}

static void let_go(struct held **place, uint64_t count) {
    struct held *each = *place;
    each->count -= count;
    drop(each->object, count);
    if (each->count) return;
    *place = each->next;
    free(each);
}

enum status user_objects_retain(struct user_objects **held, uint64_t handle, uint64_t count, bool moves) {
    struct user_object *object = find(handle);
    if (!object) return INVALID_VALUE;
    if (!hold(held, object, count)) return OUT_OF_MEMORY;
    object->references += count;
    if (!moves) return OK;
    if (take_from_client(object, count)) {
        drop(object, count);
        return OK;
    }
    let_go(place_of(*held, object), count);
    return INVALID_VALUE;
}

enum status user_objects_release(struct user_objects **held, uint64_t handle, uint64_t count) {
    struct user_object *object = find(handle);
    if (!object || !*held) return INVALID_VALUE;
    struct held **place = place_of(*held, object);
    if (!*place || (*place)->count < count) return INVALID_VALUE;
    let_go(place, count);
    host_thread_wait();
    return OK;
}

enum status user_objects_add(struct user_objects **held, const struct user_objects *others) {
    for (const struct held *each = others ? others->first : NULL; each; each = each->next) {
        if (!hold(held, each->object, each->count)) {
            for (const struct held *added = others->first; added != each; added = added->next)
                let_go(place_of(*held, added->object), added->count);
            return OUT_OF_MEMORY;
        }
        each->object->references += each->count;
    }
    return OK;
}

struct user_objects *user_objects_keep(struct user_objects *held) {
    if (held) held->sharers++;
    return held;
}

void user_objects_drop(struct user_objects *held) {
    if (!held || --held->sharers) return;
    while (held->first) let_go(&held->first, held->first->count);
    free(held);
}

void user_objects_close(void) {
    enum thing thing;
    for (uint64_t handle = 0; (handle = handle_next(handle, &thing));) {
        struct user_object *object = thing == THING_USER_OBJECT ? find(handle) : NULL;
        if (!object) continue;
        host_thread_forget(object->destruction);
        object->destruction = NULL;
        uint64_t owned = object->owned;
        object->owned = 0;
        if (owned) drop(object, owned);
    }
}
