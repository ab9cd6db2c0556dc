#include "embedded_names.h"

#include "frames.h"
#include "memory.h"
#include "references.h"
#include "slots.h"
#include "texts.h"
#include "unnamed.h"

/* A profiler can ask to be called by each public function, which then says its own name. So the function that refers to
   the text "cudaMalloc" is cudaMalloc, unless it is the client's: those lie elsewhere, for the archive has one member,
   and the functions without names say where. */

typedef struct {
    texts names;
    references by;
} workspace;

static int is_other(const embedded_functions *found, ElfW(Addr) address, const char *name) {
    for (int each = 0; each < found->count; each++) {
        const embedded_function *known = &found->functions[each];
        if (known->address == address || is_same(known->name, name)) return 0;
    }
    return 1;
}

static const char *take_named(embedded_functions *found, const frames *in, const references *by, ElfW(Addr) low) {
    for (int each = 0; each < by->count; each++) {
        ElfW(Addr) address = frames_start(in, by->all[each].function);
        if (address - low >= RUNTIME_BYTES_MAX) continue;
        if (!is_other(found, address, by->all[each].name))
            return "one of its functions goes by two names, or two by one";
        if (found->count == FUNCTIONS_MAX) return "it has too many functions";
        found->functions[found->count++] = (embedded_function){address, by->all[each].name};
    }
    return NULL;
}

static const char *find(workspace *with, const frames *in, embedded_functions *found) {
    unnamed run;
    if (!references_collect(&with->by, in, &with->names)) return NULL;
    if (!unnamed_find(&run, in, &with->by)) return NULL;
    for (int each = 0; each < run.count; each++)
        found->functions[found->count++] = (embedded_function){frames_start(in, run.first + each), run.names[each]};
    return take_named(found, in, &with->by, found->functions[0].address);
}

named embedded_by_names(const object *in, embedded_functions *found, const char **wrong) {
    frames functions;
    workspace *with = memory_map(sizeof *with);
    named result = NO_NAMES;
    found->count = 0;
    *wrong = NULL;
    if (!with) return result;
    int texts = texts_collect(&with->names, in);
    if (texts < 0 || texts >= NAMES_LEAST) {
        result = UNKNOWN_NAMES;
        if (texts > 0 && slots_collect(&with->names, in) && frames_open(&functions, in))
            *wrong = find(with, &functions, found);
        if (!*wrong && found->count) result = FOUND_NAMES;
    }
    memory_unmap(with, sizeof *with);
    return result;
}
