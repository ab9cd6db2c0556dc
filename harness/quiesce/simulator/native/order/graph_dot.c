#include "order/graph_dot.h"

#include <inttypes.h>
#include <stdio.h>

#include "ledger/handle.h"
#include "order/graph.h"

static const char *word_of(enum work_kind kind) {
    switch (kind) {
        case WORK_COPY: return "copy";
        case WORK_FILL: return "fill";
        case WORK_LAUNCH: return "kernel";
        case WORK_HOST: return "host function";
        case WORK_CHILD: return "child graph";
        case WORK_RECORD: return "event record";
        case WORK_AWAIT: return "event wait";
        case WORK_ALLOCATE: return "memory allocation";
        case WORK_END: return "memory free";
        default: return "empty";
    }
}

static void draw(FILE *file, const struct graph *graph) {
    for (const struct work *work = graph->nodes.head; work; work = work->next)
        fprintf(file, "  \"%" PRIu64 ".%u\" [label=\"%u: %s\"];\n", graph->identifier, work->number, work->number,
                word_of(work->kind));
    for (size_t i = 0; i < graph->edges.count; i++)
        fprintf(file, "  \"%" PRIu64 ".%u\" -> \"%" PRIu64 ".%u\";\n", graph->identifier, graph->edges.all[i].from,
                graph->identifier, graph->edges.all[i].to);
    for (const struct work *work = graph->nodes.head; work; work = work->next) {
        if (work->kind != WORK_CHILD) continue;
        fprintf(file, "  subgraph \"cluster%" PRIu64 "\" {\n  label=\"in %u\";\n", work->child->identifier,
                work->number);
        draw(file, work->child);
        fputs("  }\n", file);
    }
}

enum status graph_draw(uint64_t handle, const char *path) {
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    FILE *file = graph && path ? fopen(path, "w") : NULL;
    if (!file) return graph && path ? OPERATING_SYSTEM : INVALID_VALUE;
    fputs("digraph {\n", file);
    draw(file, graph);
    fputs("}\n", file);
    return fclose(file) ? OPERATING_SYSTEM : OK;
}
