#include "kernels/request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "machine/settings.h"
#include "memory/base.h"

enum request_kind {
    REQUEST_MODULE = 1,
    REQUEST_KERNEL,
    REQUEST_DECLARATIONS,
    REQUEST_TOOLKIT,
    REQUEST_ONE_BY_ONE_KERNEL,
    REQUEST_CHECKED_KERNEL,
    REQUEST_ONE_BY_ONE_CHECKED_KERNEL,
    REQUEST_BACKWARDS_KERNEL,
    REQUEST_BACKWARDS_CHECKED_KERNEL,
    REQUEST_TRACED_KERNEL,
    REQUEST_ROWS_KERNEL,
    REQUEST_ROWS_CHECKED_KERNEL,
};
enum answer_kind { ANSWER_CONTENT, ANSWER_REFUSAL };

// As server.py has them. A module is told of once on each connection, and has no answer.
struct request_header {
    uint32_t kind, packing;
    uint64_t module, bytes, plain_bytes, memory_base;
};
struct answer_header {
    uint32_t kind, reserved;
    uint64_t bytes;
};

enum { MODULES_MAX = 1 << 16 };
#define ANSWER_BYTES_MAX (1ull << 32)

static int connection = -1;
static uint64_t *told;  // which modules, on this connection
static unsigned told_count;

// -- the connection --------------------------------------------------------------------------------------------------

static void disconnect(void) {
    if (connection >= 0) close(connection);
    connection = -1;
    told_count = 0;
}

void requests_close(void) {
    disconnect();
    free(told);
    told = NULL;
}

// The folder's path may be longer than the address of a socket can be. Returns -1 where nobody listens.
static int connect_through(const char *folder_path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int folder = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/kernels", folder);
    bool connected = folder >= 0 && made >= 0 && !connect(made, (struct sockaddr *)&address, sizeof address);
    if (folder >= 0) close(folder);
    if (connected) return made;
    if (made >= 0) close(made);
    return -1;
}

static bool connect_to_compiler(void) {
    if (connection >= 0) return true;
    if (!told) told = malloc(MODULES_MAX * sizeof *told);
    connection = told ? connect_through(settings.folder) : -1;
    return connection >= 0;
}

static bool send_bytes(int connection, const void *content, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t sent = send(connection, (const char *)content + done, bytes - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        done += (size_t)sent;
    }
    return true;
}

static bool receive_bytes(int connection, void *content, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t got = recv(connection, (char *)content + done, bytes - done, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

// -- requests --------------------------------------------------------------------------------------------------------

static bool send_request(enum request_kind kind, const struct ptx *ptx, const char *content, size_t bytes) {
    struct request_header header = {kind,  (uint32_t)ptx->packing, ptx->identity,
                                    bytes, ptx->plain_bytes,        memory_base};
    return send_bytes(connection, &header, sizeof header) && send_bytes(connection, content, bytes);
}

static bool send_module(const struct ptx *ptx) {
    for (unsigned i = 0; i < told_count; i++)
        if (told[i] == ptx->identity) return true;
    if (told_count == MODULES_MAX) disconnect();
    if (!connect_to_compiler() || !send_request(REQUEST_MODULE, ptx, ptx->content, ptx->bytes)) return false;
    told[told_count++] = ptx->identity;
    return true;
}

static struct answer refuse(const char *why) {
    char *content = strdup(why);
    return (struct answer){true, content, content ? strlen(content) : 0};
}

// False: the connection has ended, and the answer is why.
static bool receive_answer(int connection, struct answer *answer) {
    struct answer_header header;
    if (!receive_bytes(connection, &header, sizeof header) || header.bytes > ANSWER_BYTES_MAX) {
        *answer = refuse("the compiler ended, or took too long, while it compiled this kernel");
        return false;
    }
    *answer = (struct answer){header.kind != ANSWER_CONTENT, malloc(header.bytes + 1), header.bytes};
    if (answer->content && receive_bytes(connection, answer->content, answer->bytes)) {
        answer->content[answer->bytes] = 0;
        return true;
    }
    free(answer->content);
    *answer = refuse("the compiler ended while it answered");
    return false;
}

static struct answer ask(enum request_kind kind, const struct ptx *ptx, const char *name) {
    for (unsigned attempt = 0; attempt < 2; attempt++) {  // an old connection may have ended since the last request
        bool sent = connect_to_compiler() && send_module(ptx) && send_request(kind, ptx, name, strlen(name));
        struct answer answer;
        bool received = sent && receive_answer(connection, &answer);
        if (!received) disconnect();
        if (sent) return answer;
    }
    return refuse("the compiler of kernels can't be reached");
}

struct answer request_kernel(const struct ptx *ptx, const char *name, enum object_kind kind) {
    static const enum request_kind KINDS[][2] = {
        [OBJECT_USUAL] = {REQUEST_KERNEL, REQUEST_CHECKED_KERNEL},
        [OBJECT_ONE_BY_ONE] = {REQUEST_ONE_BY_ONE_KERNEL, REQUEST_ONE_BY_ONE_CHECKED_KERNEL},
        [OBJECT_TRACED] = {REQUEST_TRACED_KERNEL, REQUEST_TRACED_KERNEL},
        [OBJECT_BACKWARDS] = {REQUEST_BACKWARDS_KERNEL, REQUEST_BACKWARDS_CHECKED_KERNEL},
        [OBJECT_ROWS] = {REQUEST_ROWS_KERNEL, REQUEST_ROWS_CHECKED_KERNEL},
    };
    return ask(KINDS[kind][settings.checks], ptx, name);
}

// On a connection of its own, for the caller has not the lock.
struct answer request_toolkit(const char *library) {
    struct request_header header = {.kind = REQUEST_TOOLKIT, .bytes = strlen(library)};
    struct answer answer;
    int own = connect_through(settings.folder);
    if (own < 0 || !send_bytes(own, &header, sizeof header) || !send_bytes(own, library, header.bytes))
        answer = refuse("CUDA's compiler was not found: the process that looks for it can't be reached");
    else
        receive_answer(own, &answer);
    if (own >= 0) close(own);
    return answer;
}

char *request_declarations(const struct ptx *ptx) {
    if (ptx->packing == PACKED_PLAIN) return strndup(ptx->content, ptx->bytes);
    struct answer answer = ask(REQUEST_DECLARATIONS, ptx, "");
    if (!answer.is_refused) return answer.content;
    free(answer.content);
    return NULL;
}
