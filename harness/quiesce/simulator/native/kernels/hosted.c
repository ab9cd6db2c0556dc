#include "kernels/hosted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "kernels/call.h"
#include "kernels/checks.h"
#include "kernels/kernel.h"
#include "kernels/launch.h"
#include "kernels/ranges.h"
#include "kernels/touched.h"
#include "ledger/current_test.h"
#include "ledger/failure.h"
#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "ledger/unsimulated.h"
#include "machine/settings.h"
#include "memory/memory.h"
#include "memory/places.h"
#include "order/context.h"
#include "order/stream.h"
#include "order/stream_handles.h"

enum said_kind { SAY_BEGIN = 1, SAY_RUN, SAY_GO_ON };
enum asked_kind { ASK_HOST = 1, ASK_READ, ASK_WRITE, ASK_USE, ASK_RESULT, ASK_DONE, ASK_GATHER, ASK_SCATTER };
enum { OPERANDS = 32, SITES = 2 * OPERANDS, NAMES_BYTES = 512, WIDEST = 16, ANSWER_SECONDS = 600 };
enum done_flags { DONE_RUNS = 1, DONE_WAITS = 2, DONE_UNKNOWN = 4 };
#define ELEMENTS_MAX (1ull << 31)

// As conversation.py has them. A message is one packet; what is read and written goes through memory that both have.
struct said {
    uint32_t kind, is_wrong;  // of a range: some of it was, and what was read there is zero
};
struct asked {
    uint32_t kind, operand, element, status;
    uint64_t address, count, rows;  // HOST, RESULT: bytes for a count; DONE: flags, words, bytes that are kept
    int64_t pitch;                  // from one row to the next
    uint64_t place;                 // in the shared memory; DONE: bytes of the operands' names
};
struct packet {
    struct asked asked;
    char text[HOSTED_KEPT_BYTES + NAMES_BYTES];
};

static int connection = -1, memory = -1;
static char *mapped;
static size_t mapped_bytes;
static volatile bool converses;  // it stays so where a kernel was left by a jump

// -- the connection --------------------------------------------------------------------------------------------------

static void disconnect(void) {
    if (connection >= 0) close(connection);
    if (memory >= 0) close(memory);
    if (mapped) munmap(mapped, mapped_bytes);
    connection = memory = -1;
    mapped = NULL;
    mapped_bytes = 0;
    converses = false;
}

// The folder's path may be longer than the address of a socket can be. Returns -1 where nobody listens.
static int connect_through(const char *folder_path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = ANSWER_SECONDS};
    int folder = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/libraries", folder);
    bool connected = folder >= 0 && made >= 0 && !connect(made, (struct sockaddr *)&address, sizeof address);
    if (folder >= 0) close(folder);
    if (connected && !setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience)) return made;
    if (made >= 0) close(made);
    return -1;
}

// Hands over memory that can only grow: the process could else end this one, which reads there.
static bool share_memory(void) {
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } with = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    char nothing = 0;
    struct iovec content = {&nothing, 1};
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1, .msg_control = &with, .msg_controllen = sizeof with};
    memory = memfd_create("quiesce-libraries", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0 || fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK)) return false;
    memcpy(CMSG_DATA(&with.head), &memory, sizeof memory);
    return sendmsg(connection, &message, MSG_NOSIGNAL) == 1;
}

static bool connect_to_libraries(void) {
    if (converses) disconnect();
    if (connection >= 0) return true;
    connection = connect_through(settings.folder);
    if (connection >= 0 && share_memory()) return true;
    disconnect();
    return false;
}

// Where a piece of the shared memory is; NULL: it has no such piece.
static char *shared(uint64_t place, uint64_t bytes) {
    struct stat now;
    uint64_t end;
    if (__builtin_add_overflow(place, bytes, &end)) return NULL;
    if (end <= mapped_bytes) return mapped + place;
    if (fstat(memory, &now) || end > (uint64_t)now.st_size) return NULL;
    if (mapped) munmap(mapped, mapped_bytes);
    mapped = mmap(NULL, (size_t)now.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    mapped_bytes = mapped == MAP_FAILED ? 0 : (size_t)now.st_size;
    if (mapped == MAP_FAILED) mapped = NULL;
    return mapped ? mapped + place : NULL;
}

static bool say_of(enum said_kind kind, bool is_wrong, const void *content, size_t bytes) {
    struct said said = {kind, is_wrong};
    struct iovec parts[] = {{&said, sizeof said}, {(void *)content, bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent;
    do sent = sendmsg(connection, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)(sizeof said + bytes);
}

static bool say(enum said_kind kind, const void *content, size_t bytes) { return say_of(kind, false, content, bytes); }

static bool hear(struct packet *packet) {
    ssize_t got;
    do got = recv(connection, packet, sizeof *packet - 1, MSG_TRUNC);
    while (got < 0 && errno == EINTR);
    if (got < (ssize_t)sizeof packet->asked || got >= (ssize_t)sizeof *packet) return false;
    ((char *)packet)[got] = 0;
    return true;
}

// -- accesses --------------------------------------------------------------------------------------------------------

static uint32_t site_of(const struct asked *asked) { return 2 * asked->operand + (asked->kind != ASK_READ); }

static uint64_t element_at(const struct asked *asked, uint64_t row, uint64_t i) {
    return asked->address + (uint64_t)(asked->pitch * (int64_t)row) + i * asked->element;
}

// Whether all of a range is right, which is then noted.
static bool is_right(struct kernel_context *context, const struct asked *asked, enum access_kind kind) {
    struct kernel_range range = {.address = asked->address,
                                 .steps = {asked->element, asked->pitch, 0},
                                 .counts = {(uint32_t)asked->count, (uint32_t)asked->rows, 1},
                                 .access = asked->element | (uint32_t)kind << 8,
                                 .site = site_of(asked)};
    return !settings.checks || quiesce_kernel_ranges(context, &range, 1);
}

// A range of which some may be wrong, element by element: a wrong one does not take place. Returns whether one was.
static bool move_elements(struct kernel_context *context, const struct asked *asked, char *buffer,
                          enum access_kind kind) {
    enum touch touch = kind == LOADS ? TOUCH_READ : TOUCH_WRITE;
    uint32_t word = asked->element | (uint32_t)kind << 8 | (1u << touch) << 16;
    bool any = false;
    for (uint64_t row = 0; row < asked->rows; row++)
        for (uint64_t i = 0; i < asked->count; i++, buffer += asked->kind == ASK_USE ? 0 : asked->element) {
            uint64_t at = element_at(asked, row, i);
            void *place = quiesce_kernel_check(context, at, word, site_of(asked), 0, NULL);
            any |= place != (void *)at;
            if (place == (void *)at) touched_use(at, asked->element, touch, site_of(asked));
            if (asked->kind == ASK_WRITE) memcpy(place, buffer, asked->element);
            if (asked->kind == ASK_READ) memcpy(buffer, place, asked->element);
        }
    return any;
}

// The host's own access to memory of a device, which would end a program.
static void see_strange(uint64_t address, uint32_t bytes, uint32_t operand, bool writes) {
    checks_see(&(struct wrong_access){.seen = SEEN_KERNEL_NO_MEMORY,
                                      .address = address,
                                      .bytes = bytes,
                                      .writes = writes,
                                      .site = 2 * operand + writes,
                                      .threads = {1, 1, 1}});
}

static bool is_of_a_device(uint64_t address) {
    return memory_covers(address) && memory_find(address).thing == THING_DEVICE;
}

// A result in the host's memory, of a launch that runs or (NULL) of the call itself.
static bool give_result(const struct kernel_context *context, const struct asked *asked) {
    const char *buffer = shared(asked->place, asked->count);
    if (!buffer || asked->operand >= OPERANDS) return false;
    if (context && settings.checks && is_of_a_device(asked->address))
        see_strange(asked->address, (uint32_t)asked->count, asked->operand, true);
    else
        memcpy((void *)asked->address, buffer, asked->count);
    return true;
}

// False: no such range can be.
static bool move(struct kernel_context *context, const struct asked *asked, bool *is_wrong) {
    uint64_t element = asked->element, bytes;
    bool is_some = element && element <= WIDEST && !(element & (element - 1)) && asked->operand < OPERANDS;
    if (!is_some || asked->count >= ELEMENTS_MAX || asked->rows >= ELEMENTS_MAX) return false;
    if (__builtin_mul_overflow(element * asked->count, asked->rows, &bytes)) return false;
    char *buffer = asked->kind == ASK_USE ? NULL : shared(asked->place, bytes);
    if (asked->kind != ASK_USE && !buffer) return false;
    enum access_kind kind = asked->kind == ASK_READ ? LOADS : STORES;
    if (!is_right(context, asked, kind)) {
        *is_wrong = move_elements(context, asked, buffer, kind);
        return true;
    }
    size_t row_bytes = element * asked->count;
    for (uint64_t row = 0; buffer && row < asked->rows; row++, buffer += row_bytes) {
        void *at = (void *)element_at(asked, row, 0);
        if (asked->kind == ASK_WRITE) memcpy(at, buffer, row_bytes);
        if (asked->kind == ASK_READ) memcpy(buffer, at, row_bytes);
    }
    return true;
}

// Elements anywhere, by their distances from an address: these lie in the shared memory before the elements. Such as
// follow each other are one range.
static bool move_scattered(struct kernel_context *context, const struct asked *asked, bool *is_wrong) {
    if (asked->count >= ELEMENTS_MAX || asked->element > WIDEST) return false;
    uint64_t index_bytes = asked->count * sizeof(int64_t);
    for (uint64_t at = 0, end; at < asked->count; at = end) {
        // a range may move the shared memory
        const int64_t *indices = (const int64_t *)shared(asked->place, index_bytes);
        if (!indices) return false;
        int64_t first = indices[at];
        for (end = at + 1; end < asked->count && indices[end] == first + (int64_t)(end - at); end++) {}
        struct asked run = *asked;
        bool run_is_wrong = false;
        run.kind = asked->kind == ASK_GATHER ? ASK_READ : ASK_WRITE;
        run.address = asked->address + (uint64_t)first * asked->element;
        run.count = end - at;
        run.rows = 1;
        run.pitch = 0;
        run.place = asked->place + index_bytes + at * asked->element;
        if (!move(context, &run, &run_is_wrong)) return false;
        *is_wrong |= run_is_wrong;
    }
    return true;
}

// -- the conversation ------------------------------------------------------------------------------------------------

static size_t call_bytes(const struct hosted_call *call) {
    return offsetof(struct hosted_call, kept) + call->kept_bytes;
}

static bool read_host(struct hosted_call *call, const struct asked *asked) {
    if (asked->count > HOSTED_KEPT_BYTES || asked->operand >= OPERANDS) return false;
    if (is_of_a_device(asked->address)) {
        call->strange_address = asked->address;
        call->strange_operand = asked->operand;
        call->strange_bytes = (uint32_t)asked->count;
    }
    return say(SAY_GO_ON, (void *)asked->address, asked->count);
}

// Answers what the process asks until it is done. False: it has ended, or says what makes no sense. `context`: of a
// launch that runs; else the function is called, and the host's memory is read.
static bool converse(struct hosted_call *call, struct kernel_context *context, struct packet *packet, bool *any) {
    struct asked *asked = &packet->asked;
    while (hear(packet)) {
        *any = true;
        bool goes_on = false, is_wrong = false;
        if (asked->kind == ASK_DONE) return true;
        if (asked->kind == ASK_HOST && !context)
            goes_on = read_host(call, asked);
        else if (asked->kind == ASK_RESULT)
            goes_on = give_result(context, asked) && say(SAY_GO_ON, NULL, 0);
        else if (context && asked->kind >= ASK_READ && asked->kind <= ASK_USE)
            goes_on = move(context, asked, &is_wrong) && say_of(SAY_GO_ON, is_wrong, NULL, 0);
        else if (context && (asked->kind == ASK_GATHER || asked->kind == ASK_SCATTER))
            goes_on = move_scattered(context, asked, &is_wrong) && say_of(SAY_GO_ON, is_wrong, NULL, 0);
        if (!goes_on) return false;
    }
    return false;
}

// A process that has ended before it asked anything is replaced by another one.
static bool ask(enum said_kind kind, struct hosted_call *call, struct kernel_context *context,
                struct packet *packet) {
    bool any = false;
    for (unsigned attempt = 0; attempt < 2 && !any; attempt++) {
        if (!connect_to_libraries()) return false;
        converses = true;
        if (say(kind, call, call_bytes(call)) && converse(call, context, packet, &any)) {
            converses = false;
            return true;
        }
        disconnect();
    }
    return false;
}

static int run_hosted(struct kernel_context *context) {
    static struct packet packet;
    struct hosted_call *call = (struct hosted_call *)context->parameters;
    if (settings.checks && call->strange_address)
        see_strange(call->strange_address, call->strange_bytes, call->strange_operand, false);
    bool done = ask(SAY_RUN, call, context, &packet);
    return done && !packet.asked.status ? 0 : ENDED_BY_HOST;
}

// -- calls -----------------------------------------------------------------------------------------------------------

// A function on a device, as a kernel of one thread. They are few, and stay.
static struct hosted {
    struct hosted *next;
    struct kernel kernel;
    struct kernel_parameter parameter;
    struct kernel_site sites[SITES];
    char names[NAMES_BYTES];
    const char *texts[SITES];
} *all;

// `names`: of the operands, each with a NUL behind, and an empty one at the end.
static const struct hosted *hosted_of(const char *function, unsigned device, const char *names, size_t bytes) {
    for (struct hosted *each = all; each; each = each->next)
        if (each->kernel.name == function && each->kernel.device == device) return each;
    struct hosted *made = calloc(1, sizeof *made);
    if (!made || bytes >= NAMES_BYTES) {
        free(made);
        return NULL;
    }
    memcpy(made->names, names, bytes);
    const char *name = made->names;
    for (unsigned i = 0; i < SITES; i += 2) {
        made->texts[i] = made->texts[i + 1] = name;
        if (*name) name += strlen(name) + 1;
    }
    made->parameter.bytes = sizeof(struct hosted_call);
    made->kernel.name = (char *)function;
    made->kernel.device = device;
    made->kernel.object = (struct object){.memory = made,
                                          .parameters = &made->parameter,
                                          .sites = made->sites,
                                          .site_texts = made->texts,
                                          .block = run_hosted,
                                          .info = {.abi = KERNEL_ABI,
                                                   .parameter_bytes = sizeof(struct hosted_call),
                                                   .parameter_count = 1,
                                                   .site_count = SITES}};
    made->next = all;
    return all = made;
}

// Words that the function does not take are whatever its caller's stack had.
static bool keep(struct hosted_call *call, const struct packet *packet) {
    uint64_t words = packet->asked.count, bytes = packet->asked.rows;
    if (words > HOSTED_WORDS || bytes > HOSTED_KEPT_BYTES) return false;
    memset(call->words + words, 0, (HOSTED_WORDS - words) * sizeof *call->words);
    call->kept_bytes = bytes;
    memcpy(call->kept, packet->text, bytes);
    return true;
}

enum status hosted_begin(const char *name, struct hosted_call *call, unsigned device, struct begun *begun) {
    static struct packet packet;
    *begun = (struct begun){0};
    snprintf(call->name, sizeof call->name, "%s", name);
    if (!ask(SAY_BEGIN, call, NULL, &packet) || !keep(call, &packet))
        return unsimulated(name, "the process that computes functions of libraries can't be reached, or has ended");
    uint64_t flags = packet.asked.address;
    if (flags & DONE_UNKNOWN) return unsimulated(name, packet.text);
    begun->answer = (int)packet.asked.status;
    if (begun->answer || !(flags & DONE_RUNS)) return OK;
    begun->waits = flags & DONE_WAITS;
    begun->function = hosted_of(name, device, packet.text + call->kept_bytes, packet.asked.place);
    return begun->function ? OK : OUT_OF_MEMORY;
}

enum status hosted_launch(struct stream *stream, const struct begun *begun, struct hosted_call *call) {
    struct dimensions one = {{1, 1, 1}, {1, 1, 1}, 0, false};
    enum status status = launch_of_library(stream, &begun->function->kernel, &one, (void *[]){call});
    return status || !begun->waits ? status : stream_synchronize(stream);  // the result goes to the host
}

void hosted_range(void (*add)(const void *start, size_t bytes)) { add(mapped, mapped_bytes); }

void hosted_close(void) {
    disconnect();
    while (all) {
        struct hosted *next = all->next;
        free(all);
        all = next;
    }
}
