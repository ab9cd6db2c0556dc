#include "ledger/python_frames.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ledger/stack_log.h"

// Most calls come from a thread that gave the interpreter's lock away for their duration, and waiting for it under our
// own lock could be for ever. But a thread's frames are its own: nobody else changes them while it is in a call, and
// what they refer to lives as long as they. So they are read in place, without the lock and without counting
// references. Functions of the interpreter are called only for objects whose type was seen to be right, and only such
// as neither allocate nor count.
//
// The offsets are those of CPython's internal headers (pycore_frame.h, cpython/pystate.h), which are fixed within a
// release; test_python_frames.py compares the outcome with the interpreter's own. Other releases, and builds whose
// objects begin differently, show no Python frames.
static const struct layout {
    unsigned version;                 // major << 8 | minor
    unsigned frame_of_thread;         // where a thread's state keeps its frame, or
    unsigned indirection;             // with one more step, at this offset plus one of what it points to; 0: none
    unsigned code, previous, next_instruction, owner;
} LAYOUTS[] = {
    {0x30b, 56, 9, 32, 48, 56, 69},
    {0x30c, 56, 1, 0, 8, 56, 70},
    {0x30d, 72, 0, 0, 8, 56, 70},
};
enum {
    FRAME_BYTES = 80,
    OWNED_BY_C_STACK = 3,  // a frame that stands for no code, between two of the interpreter's loops
    TYPE_BASIC_SIZE = 32,  // of PyTypeObject, which is public: tp_basicsize, tp_members
    TYPE_MEMBERS = 240,
    TEXT_CHARACTERS_MAX = 400,
};

struct member {  // PyMemberDef
    const char *name;
    int type;
    int64_t offset;
    int flags;
    const char *text;
};

static const struct layout *layout;
bool python_is_known;
static struct {
    void *(*thread)(void);
    int (*line)(void *code, int byte);
    int64_t (*length)(void *text);
    uint32_t (*character)(void *text, int64_t index);
    const char *code_type;
    int64_t file, name, lines, first_line, instructions;
} python;

static bool is_trusted;  // see copy()

// Stacks that were read before, by what tells them apart: the places in their code, and what that code says of itself,
// for another function may be compiled to the same place. 64 bits mixed well are believed.
enum { KNOWN_MAX = 1 << 12 };
static struct known {
    uint64_t key;
    uint32_t number;
} known[KNOWN_MAX];

struct place {  // in code
    char *code;
    int64_t byte;
};

static int64_t member_offset(const char *name) {
    const struct member *member;
    memcpy(&member, python.code_type + TYPE_MEMBERS, sizeof member);
    for (; member && member->name; member++)
        if (!strcmp(member->name, name)) return member->offset;
    return 0;
}

void python_frames_open(void) {
    python_is_known = is_trusted = false;
    memset(known, 0, sizeof known);  // the log is another one
    const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version");
    python.thread = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    python.line = (int (*)(void *, int))dlsym(RTLD_DEFAULT, "PyCode_Addr2Line");
    python.length = (int64_t (*)(void *))dlsym(RTLD_DEFAULT, "PyUnicode_GetLength");
    python.character = (uint32_t(*)(void *, int64_t))dlsym(RTLD_DEFAULT, "PyUnicode_ReadChar");
    python.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    if (!version || !python.thread || !python.line || !python.length || !python.character || !python.code_type) return;
    layout = NULL;
    for (unsigned i = 0; i < sizeof LAYOUTS / sizeof *LAYOUTS; i++)
        if (LAYOUTS[i].version == *version >> 16) layout = &LAYOUTS[i];
    if (!layout) return;
    python.file = member_offset("co_filename");
    python.name = member_offset("co_qualname");
    python.lines = member_offset("co_linetable");
    python.first_line = member_offset("co_firstlineno");
    memcpy(&python.instructions, python.code_type + TYPE_BASIC_SIZE, sizeof python.instructions);
    python_is_known = python.file && python.name && python.lines && python.first_line;
}

// The kernel copies, so that an address that leads nowhere is an error and no fault: until a whole stack was found to
// be as the layout says. From then on frames are read as the interpreter reads them.
static bool copy(void *to, uint64_t from, size_t bytes) {
    if (is_trusted) {
        memcpy(to, (const void *)from, bytes);
        return true;
    }
    struct iovec target = {to, bytes}, source = {(void *)from, bytes};
    return process_vm_readv(getpid(), &target, 1, &source, 1, 0) == (ssize_t)bytes;
}

static bool is_code(uint64_t address) {
    uint64_t object[2];  // references, type
    return address && copy(object, address, sizeof object) && object[1] == (uint64_t)python.code_type;
}

static unsigned encode(uint32_t character, char *to) {
    if (character < 0x80) return to[0] = (char)character, 1;
    unsigned more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const unsigned char LEAD[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(LEAD[more] | character >> 6 * more);
    for (unsigned i = 1; i <= more; i++) to[i] = (char)(0x80 | (character >> 6 * (more - i) & 0x3f));
    return more + 1;
}

// Of a text that is too long the end is kept, where a path says most.
static uint32_t text_of(void *object) {
    char text[4 * TEXT_CHARACTERS_MAX];
    uint32_t used = 0;
    int64_t length = python.length(object);
    for (int64_t i = length > TEXT_CHARACTERS_MAX ? length - TEXT_CHARACTERS_MAX : 0; i < length; i++)
        used += encode(python.character(object, i), text + used);
    return stack_log_text(text, used);
}

static uint64_t word(const char *frame, unsigned offset) {
    uint64_t found;
    memcpy(&found, frame + offset, sizeof found);
    return found;
}

static uint64_t innermost(void) {
    uint64_t frame = 0, thread = (uint64_t)python.thread();
    if (!thread || !copy(&frame, thread + layout->frame_of_thread, sizeof frame)) return 0;
    if (layout->indirection && !copy(&frame, frame + layout->indirection - 1, sizeof frame)) return 0;
    return frame;
}

static uint64_t mixed(const struct place *place) {
    uint64_t words[4];
    uint32_t first_line;
    memcpy(&words[0], place->code + python.file, sizeof *words);
    memcpy(&words[1], place->code + python.name, sizeof *words);
    memcpy(&words[2], place->code + python.lines, sizeof *words);
    memcpy(&first_line, place->code + python.first_line, sizeof first_line);
    words[3] = (uint64_t)first_line << 32 ^ (uint64_t)place->byte;
    return (uint64_t)place->code * 0x9e3779b97f4a7c15ull + words[0] * 0xbf58476d1ce4e5b9ull +
           words[1] * 0x94d049bb133111ebull + words[2] * 0xd6e8feb86659fd93ull + words[3] * 0xff51afd7ed558ccdull;
}

static uint32_t walk(struct place *places, uint64_t *key) {
    uint32_t count = 0;
    char frame[FRAME_BYTES];
    uint64_t next = innermost();
    for (; next && count < PYTHON_FRAMES_MAX; next = word(frame, layout->previous)) {
        if (!copy(frame, next, sizeof frame)) return count;
        if (frame[layout->owner] == OWNED_BY_C_STACK) continue;
        uint64_t code = word(frame, layout->code);
        if (!is_code(code)) return count;
        struct place *place = &places[count++];
        *place = (struct place){(char *)code, (int64_t)(word(frame, layout->next_instruction) - code)};
        *key = (*key ^ mixed(place)) * 0x9e3779b97f4a7c15ull;
        *key ^= *key >> 29;
    }
    is_trusted = count;
    return count;
}

static struct python_frame described(const struct place *place) {
    int64_t byte = place->byte - python.instructions;
    void *file, *name;
    memcpy(&file, place->code + python.file, sizeof file);
    memcpy(&name, place->code + python.name, sizeof name);
    int line = byte < -2 || byte > INT32_MAX ? -1 : python.line(place->code, (int)byte);
    return (struct python_frame){text_of(file), text_of(name), line < 0 ? 0 : (uint32_t)line, 0};
}

uint32_t python_frames_take(void) {
    struct place places[PYTHON_FRAMES_MAX];
    uint64_t key = 1;
    uint32_t count = walk(places, &key);
    if (!count) return 0;
    struct known *entry = &known[key % KNOWN_MAX];
    if (entry->key == key) return entry->number;
    struct python_frame frames[PYTHON_FRAMES_MAX];
    for (uint32_t i = 0; i < count; i++) frames[i] = described(&places[i]);
    *entry = (struct known){key, stack_log_python(frames, count)};
    return entry->number;
}
