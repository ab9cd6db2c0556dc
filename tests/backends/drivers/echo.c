/* Writes every request as quiesce_driver.h reads it to the file that ECHO names, and serves none. */
#include "quiesce_driver.h"

static const char *or_none(const char *text) { return text ? text : ""; }

static quiesce_outcome opened(void *state, const quiesce_profile *profile) {
    (void)state;
    return profile->devices ? QUIESCE_DONE : QUIESCE_UNSUPPORTED;
}

static quiesce_outcome performed(void *state, quiesce_request *request) {
    FILE *echo = (FILE *)state;
    fprintf(echo, "%d|", (int)request->verb);
    for (size_t i = 0; i < request->slot_count; i++) fprintf(echo, "%s%s", i ? "," : "", request->slots[i]);
    fprintf(echo, "|%" PRIu64 "|%s|%s|%s|%s|%s", request->number, request->kind, request->mode,
            or_none(request->stream), or_none(request->pool), or_none(request->instance));
    fprintf(echo, "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%s|%s|%d\n", request->alignment, request->limit,
            request->size, request->arguments, or_none(request->reads), or_none(request->writes),
            request->foreign_error);
    fflush(echo);
    if (request->verb == QUIESCE_SYNCHRONIZE_DEVICE) quiesce_see("\"seen\":\"device-synchronized\",\"device\":0");
    return QUIESCE_DONE;
}

static void closed(void *state) { (void)state; }

int main(void) {
    FILE *echo = fopen(getenv("ECHO"), "w");
    const quiesce_driver driver = {getenv("HELLO"), opened, performed, NULL, closed, echo};
    return echo == NULL || quiesce_serve(&driver) || fclose(echo);
}
