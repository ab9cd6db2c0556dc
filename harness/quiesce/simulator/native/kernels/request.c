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

enum request_kind { REQUEST_MODULE = 1, REQUEST_KERNEL, REQUEST_DECLARATIONS };
enum answer_kind { ANSWER_CONTENT, ANSWER_REFUSAL };

// As server.py has them. A module is told of once on each connection, and has no answer.
struct request_header {
    uint32_t kind, packing;
    uint64_t module, bytes, plain_bytes;
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

// The folder's path may be longer than the address of a socket can be.
static bool connect_to_compiler(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (connection >= 0) return true;
    if (!told) told = malloc(MODULES_MAX * sizeof *told);
    int folder = open(settings.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/kernels", folder);
    bool connected = told && folder >= 0 && connection >= 0 &&
                     !connect(connection, (struct sockaddr *)&address, sizeof address);
    if (folder >= 0) close(folder);
    if (!connected) disconnect();
    return connected;
}

static bool send_bytes(const void *content, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t sent = send(connection, (const char *)content + done, bytes - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        done += (size_t)sent;
    }
    return true;
}

static bool receive_bytes(void *content, size_t bytes) {
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
    struct request_header header = {kind, (uint32_t)ptx->packing, ptx->identity, bytes, ptx->plain_bytes};
    return send_bytes(&header, sizeof header) && send_bytes(content, bytes);
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

static struct answer receive_answer(void) {
    struct answer_header header;
    if (!receive_bytes(&header, sizeof header) || header.bytes > ANSWER_BYTES_MAX) {
        disconnect();
        return refuse("the compiler ended, or took too long, while it compiled this kernel");
    }
    struct answer answer = {header.kind != ANSWER_CONTENT, malloc(header.bytes + 1), header.bytes};
    if (answer.content && receive_bytes(answer.content, answer.bytes)) {
        answer.content[answer.bytes] = 0;
        return answer;
    }
    free(answer.content);
    disconnect();
    return refuse("the compiler ended while it answered");
}

static struct answer ask(enum request_kind kind, const struct ptx *ptx, const char *name) {
    for (unsigned attempt = 0; attempt < 2; attempt++) {  // an old connection may have ended since the last request
        bool sent = connect_to_compiler() && send_module(ptx) && send_request(kind, ptx, name, strlen(name));
        if (sent) return receive_answer();
        disconnect();
    }
    return refuse("the compiler of kernels can't be reached");
}

struct answer request_kernel(const struct ptx *ptx, const char *name) { return ask(REQUEST_KERNEL, ptx, name); }

char *ptx_declarations(const struct ptx *ptx) {
    if (ptx->packing == PACKED_PLAIN) return strndup(ptx->content, ptx->bytes);
    struct answer answer = ask(REQUEST_DECLARATIONS, ptx, "");
    if (!answer.is_refused) return answer.content;
    free(answer.content);
    return NULL;
}
