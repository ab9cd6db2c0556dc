#include "reach/python_objects.h"

#include <dlfcn.h>
#include <stddef.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    INTEGER_FLAG_BIT = 24,  // Py_TPFLAGS_LONG_SUBCLASS
    HEADER_STEP = 16,       // what the collector keeps before an object, and from 3.11 on what replaces its dictionary
    HEADERS = 3,
    REFERENCES_BITS = 40,   // more of them than this has no object
    ADDRESS_BITS = 47,
    KNOWN_TYPES = 4096,
};

struct object {
    uint64_t references;
    uint64_t type;
};

struct type {  // PyTypeObject, as far as its head
    struct object object;
    uint64_t size;
    uint64_t name;
    int64_t object_bytes, item_bytes;
    uint64_t functions[15];
    uint64_t flags;
};

struct list {
    struct object object;
    int64_t count;
    uint64_t items;
    int64_t capacity;
};

static uint64_t type_of_types, type_of_lists;

_Static_assert(offsetof(struct type, flags) == 168, "where tp_flags lies");

void python_objects_prepare(void) {
    type_of_types = (uint64_t)dlsym(RTLD_DEFAULT, "PyType_Type");
    type_of_lists = (uint64_t)dlsym(RTLD_DEFAULT, "PyList_Type");
}

// What was read of a type, or what only looked like one, at places by its address.
static struct known {
    uint64_t address;
    int64_t object_bytes;  // 0: of no fixed size, or no type
    bool is_integer;
} known[KNOWN_TYPES];

// The kernel copies, so that an address that leads nowhere is an error and no fault.
static struct known read_type(uint64_t address) {
    struct type type;
    struct iovec to = {&type, sizeof type}, from = {(void *)address, sizeof type};
    struct known read = {.address = address};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)sizeof type) return read;
    // Other kinds of types than the interpreter's first are few.
    if (type.object.type != type_of_types) return read;
    read.object_bytes = type.item_bytes || type.object_bytes < 0 ? 0 : type.object_bytes;
    read.is_integer = type.flags >> INTEGER_FLAG_BIT & 1;
    return read;
}

static struct known type_at(uint64_t address) {
    if (!type_of_types || !address || address % sizeof address || address >> ADDRESS_BITS) return (struct known){0};
    struct known *place = &known[address / HEADER_STEP % KNOWN_TYPES];
    if (place->address != address) *place = read_type(address);
    return *place;
}

static bool is_object(const struct object *object) {
    return object->references && !(object->references >> REFERENCES_BITS);
}

bool python_digits_are_integers(uint64_t address) {
    // before them: references, type, and how many there are
    const struct object *object = (const struct object *)(address - sizeof(struct object) - sizeof(uint64_t));
    return is_object(object) && type_at(object->type).is_integer;
}

uint64_t python_object_end(uint64_t start, uint64_t end) {
    for (unsigned i = 0; i < HEADERS; i++) {
        uint64_t at = start + i * HEADER_STEP;
        const struct object *object = (const struct object *)at;
        if (at + sizeof *object >= end) break;
        uint64_t object_bytes = is_object(object) ? (uint64_t)type_at(object->type).object_bytes : 0;
        // Allocators round up to less than a step more.
        if (object_bytes && at + object_bytes < end && end - at - object_bytes < HEADER_STEP) return at + object_bytes;
    }
    return end;
}

bool python_list_items(uint64_t start, uint64_t end, uint64_t *first, uint64_t *last) {
    const struct list *list = (const struct list *)(start + HEADER_STEP);
    if (!type_of_lists || end - start < HEADER_STEP + sizeof *list || list->object.type != type_of_lists) return false;
    if (!is_object(&list->object) || list->count < 0 || list->count > list->capacity) return false;
    *first = list->items;
    *last = list->items + (uint64_t)list->count * sizeof(uint64_t);
    return true;
}
