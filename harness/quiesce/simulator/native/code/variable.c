#include "code/variable.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code/image.h"
#include "code/ptx.h"
#include "ledger/ledger.h"
#include "machine/settings.h"
#include "machine/upcalls.h"
#include "memory/memory.h"
#include "memory/places.h"
#include "memory/shadow.h"
#include "order/capture.h"

struct variables {
    struct variable {
        struct variable *next;
        char *name;
        uint64_t size_bytes;
        void *content;  // at first; NULL: zeros
        bool unclear, is_constant;
        unsigned written;                 // the devices on which it has what it holds at first all the same
        uint64_t addresses[DEVICES_MAX];  // 0: it is not there
    } *first, **last;
};

static const struct variable *find(const struct variables *variables, const char *name, size_t name_bytes) {
    const struct variable *each = variables->first;
    while (each && (strlen(each->name) != name_bytes || memcmp(each->name, name, name_bytes))) each = each->next;
    return each;
}

// An ELF file may have two tables with the same symbols.
static bool add(void *context, const struct described *described) {
    struct variables *variables = context;
    if (find(variables, described->name, described->name_bytes)) return true;
    struct variable *made = calloc(1, sizeof *made);
    if (!made) return false;
    *variables->last = made;
    variables->last = &made->next;
    made->name = strndup(described->name, described->name_bytes);
    made->size_bytes = described->size_bytes;
    made->unclear = described->unclear;
    made->is_constant = described->is_constant;
    made->content = described->content ? malloc(described->size_bytes) : NULL;
    if (!made->name || (described->content && !made->content)) return false;
    if (made->content) memcpy(made->content, described->content, described->size_bytes);
    return true;
}

struct variables *variables_read(const char *image, size_t bytes) {
    struct variables *variables = calloc(1, sizeof *variables);
    if (!variables) return NULL;
    variables->last = &variables->first;
    bool whole = image_read(image, bytes, add, variables);
    if (whole) return variables;
    variables_delete(variables);
    return NULL;
}

struct variables *variables_read_ptx(const struct ptx *ptx) {
    char *text = upcalls.kernels.declarations(ptx);
    struct variables *variables = text ? variables_read(text, strlen(text)) : NULL;
    free(text);
    return variables;
}

bool variables_exist(const struct variables *variables) { return variables && variables->first; }

// It is part of the module, which the client gives back: nobody else does.
static void make_part(uint64_t address, bool part) { ledger_live(memory_live_at(address))->part = part; }

// A name with a tab or a line feed is no name of a compiler's.
static void note_name(uint64_t address, const char *name) {
    enum { LINE_BYTES = 4096, WITHOUT_NAME_BYTES = 64 };
    char path[FOLDER_BYTES + 64], line[LINE_BYTES];
    if (!*settings.folder || !name || strlen(name) > LINE_BYTES - WITHOUT_NAME_BYTES || strpbrk(name, "\t\n")) return;
    snprintf(path, sizeof path, "%s.variables", ledger_stem());
    int length = snprintf(line, sizeof line, "%" PRIu64 "\t%#" PRIx64 "\t%s\n",
                          ledger_live(memory_live_at(address))->observation, address, name);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0) return;
    if (write(log, line, (size_t)length) < 0) fputs("quiesce: the name of a variable could not be noted\n", stderr);
    close(log);
}

enum status variable_allocate(enum variable_space space, unsigned device, uint64_t size_bytes, const void *content,
                              const char *name, uint64_t *address) {
    enum { ATTACHED_TO_ALL = 1 };  // of managed memory
    enum thing thing = space == VARIABLE_MANAGED ? THING_MANAGED : THING_DEVICE;
    unsigned flags = space == VARIABLE_MANAGED ? ATTACHED_TO_ALL : space == VARIABLE_CONSTANT ? MEMORY_CONSTANT : 0;
    // A module is loaded during a capture too (module.c), and what a kernel uses first may be placed by its launch.
    enum capture_mode mode = capture_exchange_mode(CAPTURE_RELAXED);
    enum status status = memory_allocate(thing, device, size_bytes, flags, address);
    capture_exchange_mode(mode);
    if (status) return status;
    make_part(*address, true);
    note_name(*address, name);
    if (content)
        memcpy((void *)*address, content, size_bytes);
    else
        memset((void *)*address, 0, size_bytes);
    shadow_write(*address, size_bytes);
    return OK;
}

void variable_free(enum thing thing, uint64_t address) {
    make_part(address, false);
    if (memory_free(thing, thing, address)) make_part(address, true);  // a broken device gives nothing back
}

static enum status allocate(struct variable *variable, unsigned device) {
    enum variable_space space = variable->is_constant ? VARIABLE_CONSTANT : VARIABLE_GLOBAL;
    return variable_allocate(space, device, variable->size_bytes, variable->content, variable->name,
                             &variable->addresses[device]);
}

enum status variables_place(struct variables *variables, unsigned device) {
    enum status status = OK;
    for (struct variable *each = variables->first; each && !status; each = each->next) {
        if (!each->addresses[device]) status = allocate(each, device);
    }
    return status;
}

enum status variables_place_one(struct variables *variables, const char *name, unsigned device) {
    for (struct variable *each = variables->first; each; each = each->next) {
        if (strcmp(each->name, name)) continue;
        return each->addresses[device] ? OK : allocate(each, device);
    }
    return NOT_FOUND;
}

enum status variables_find(const struct variables *variables, unsigned device, const char *name, uint64_t *address,
                           uint64_t *size_bytes) {
    const struct variable *variable = find(variables, name, strlen(name));
    if (!variable) return NOT_FOUND;
    *address = variable->addresses[device];
    *size_bytes = variable->size_bytes;
    return variable->unclear && !(variable->written >> device & 1) ? NOT_SUPPORTED : OK;
}

void variables_written(struct variables *variables, unsigned device, const char *name, bool written) {
    struct variable *variable = (struct variable *)find(variables, name, strlen(name));
    if (!variable) return;
    variable->written &= ~(1u << device);
    variable->written |= (unsigned)written << device;
}

bool variables_initial(const struct variables *variables, const char *name, uint64_t size_bytes, const void **content) {
    const struct variable *variable = variables && name ? find(variables, name, strlen(name)) : NULL;
    if (!variable || variable->unclear || variable->size_bytes != size_bytes) return false;
    *content = variable->content;
    return true;
}

void variables_delete(struct variables *variables) {
    while (variables && variables->first) {
        struct variable *each = variables->first;
        variables->first = each->next;
        for (unsigned device = 0; device < DEVICES_MAX; device++) {
            if (each->addresses[device]) variable_free(THING_DEVICE, each->addresses[device]);
        }
        free(each->name);
        free(each->content);
        free(each);
    }
    free(variables);
}
