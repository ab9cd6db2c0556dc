// Descriptors of vectors and matrices of cuSPARSE.
//
// They are opaque. One holds what its functions were told, and quiesce.libraries.sparse_operands reads it when a
// product is called. Signatures and enumerators are those of cusparse.h.

#include <stdlib.h>
#include <string.h>

#include "libraries/computed.h"

enum { SUCCESS = 0, NO_MEMORY = 2, WRONG = 3 };
enum kind { ENDED, SPARSE_VECTOR = 0x51, DENSE_VECTOR, SPARSE_MATRIX, DENSE_MATRIX };
enum format { CSR = 1, CSC, COO, BSR = 6 };
enum { INT32 = 2, INT64 = 3, COLUMNS = 1, ROWS = 2 };  // cusparseIndexType_t, cusparseOrder_t

// As quiesce.libraries.sparse_operands has it.
struct descriptor {
    int32_t kind, format, row_type, column_type, base, type, order, batch;
    int64_t rows, columns, count;  // the stored elements (of BSR: blocks), or the leading dimension of a dense matrix
    void *row_places, *column_places, *values;
    int64_t row_stride, column_stride, value_stride;  // from one of a batch to the next
    int32_t attributes[2];
    int64_t block_rows, block_columns;
};

static int make(struct descriptor **made, const struct descriptor *content) {
    bool is_right = made && content->rows >= 0 && content->columns >= 0 && content->count >= 0;
    if (!is_right) return WRONG;
    struct descriptor *descriptor = malloc(sizeof *descriptor);
    if (!descriptor) return NO_MEMORY;
    *descriptor = *content;
    *made = descriptor;
    return SUCCESS;
}

static bool is_of(const struct descriptor *descriptor, enum kind kind) {
    return descriptor && descriptor->kind == (int32_t)kind;
}

// One that was destroyed is none any more, for as long as its memory isn't used again.
static int destroy(struct descriptor *descriptor) {
    if (!descriptor) return SUCCESS;
    explicit_bzero(descriptor, sizeof *descriptor);
    free(descriptor);
    return SUCCESS;
}

static bool is_index(int type) { return type == INT32 || type == INT64; }

#define TELL(place, value) \
    if (place) *(place) = (value)

#define DESTROYS(name) \
    EXPORT int COMPUTED(cusparseDestroy##name)(struct descriptor *descriptor) { return destroy(descriptor); }
#define VALUES(name, of)                                                                                    \
    EXPORT int COMPUTED(cusparse##name##SetValues)(struct descriptor *descriptor, void *values) {           \
        if (!is_of(descriptor, of)) return WRONG;                                                           \
        descriptor->values = values;                                                                        \
        return SUCCESS;                                                                                     \
    }                                                                                                       \
    GETS_VALUES(cusparse##name##GetValues, of)                                                              \
    GETS_VALUES(cusparseConst##name##GetValues, of)
#define GETS_VALUES(name, of)                                                            \
    EXPORT int COMPUTED(name)(const struct descriptor *descriptor, void **values) {      \
        if (!is_of(descriptor, of) || !values) return WRONG;                             \
        *values = descriptor->values;                                                    \
        return SUCCESS;                                                                  \
    }

DESTROYS(SpVec)
DESTROYS(DnVec)
DESTROYS(SpMat)
DESTROYS(DnMat)
VALUES(SpVec, SPARSE_VECTOR)
VALUES(DnVec, DENSE_VECTOR)
VALUES(SpMat, SPARSE_MATRIX)
VALUES(DnMat, DENSE_MATRIX)

// Each function that makes or tells one has a second name, for what is only read.
#define BOTH(each, create, what) each(create##what) each(create##Const##what)
#define BOTH_GET(each, what) each(cusparse##what##Get) each(cusparseConst##what##Get)

// -- vectors ---------------------------------------------------------------------------------------------------------

#define CREATES_SPARSE_VECTOR(name)                                                                              \
    EXPORT int COMPUTED(name)(struct descriptor **made, int64_t size, int64_t count, void *places, void *values, \
                              int index_type, int base, int type) {                                              \
        if (!is_index(index_type)) return WRONG;                                                                 \
        return make(made, &(struct descriptor){.kind = SPARSE_VECTOR, .rows = size, .count = count,              \
                                               .row_places = places, .values = values, .row_type = index_type,   \
                                               .base = base, .type = type, .batch = 1});                         \
    }
#define GETS_SPARSE_VECTOR(name)                                                                                  \
    EXPORT int COMPUTED(name)(const struct descriptor *of, int64_t *size, int64_t *count, void **places,          \
                              void **values, int *index_type, int *base, int *type) {                             \
        if (!is_of(of, SPARSE_VECTOR)) return WRONG;                                                              \
        TELL(size, of->rows);                                                                                     \
        TELL(count, of->count);                                                                                   \
        TELL(places, of->row_places);                                                                             \
        TELL(values, of->values);                                                                                 \
        TELL(index_type, of->row_type);                                                                           \
        TELL(base, of->base);                                                                                     \
        TELL(type, of->type);                                                                                     \
        return SUCCESS;                                                                                           \
    }
BOTH(CREATES_SPARSE_VECTOR, cusparseCreate, SpVec)
BOTH_GET(GETS_SPARSE_VECTOR, SpVec)

EXPORT int COMPUTED(cusparseSpVecGetIndexBase)(const struct descriptor *of, int *base) {
    if (!is_of(of, SPARSE_VECTOR) || !base) return WRONG;
    *base = of->base;
    return SUCCESS;
}

#define CREATES_DENSE_VECTOR(name)                                                                   \
    EXPORT int COMPUTED(name)(struct descriptor **made, int64_t size, void *values, int type) {     \
        return make(made, &(struct descriptor){.kind = DENSE_VECTOR, .rows = size, .values = values, \
                                               .type = type, .batch = 1});                           \
    }
#define GETS_DENSE_VECTOR(name)                                                                           \
    EXPORT int COMPUTED(name)(const struct descriptor *of, int64_t *size, void **values, int *type) {     \
        if (!is_of(of, DENSE_VECTOR)) return WRONG;                                                       \
        TELL(size, of->rows);                                                                             \
        TELL(values, of->values);                                                                         \
        TELL(type, of->type);                                                                             \
        return SUCCESS;                                                                                   \
    }
BOTH(CREATES_DENSE_VECTOR, cusparseCreate, DnVec)
BOTH_GET(GETS_DENSE_VECTOR, DnVec)

// -- sparse matrices -------------------------------------------------------------------------------------------------

#define CREATES_COMPRESSED(name, its_format, row_index_type, column_index_type)                                        \
    EXPORT int COMPUTED(name)(struct descriptor **made, int64_t rows, int64_t columns, int64_t count, void *offsets,  \
                              void *places, void *values, int offsets_type, int places_type, int base, int type) {     \
        if (!is_index(offsets_type) || !is_index(places_type)) return WRONG;                                           \
        bool by_rows = (its_format) == CSR;                                                                            \
        return make(made, &(struct descriptor){.kind = SPARSE_MATRIX, .format = its_format, .rows = rows,              \
                                               .columns = columns, .count = count,                                     \
                                               .row_places = by_rows ? offsets : places,                               \
                                               .column_places = by_rows ? places : offsets, .values = values,          \
                                               .row_type = row_index_type, .column_type = column_index_type,           \
                                               .base = base, .type = type, .batch = 1});                               \
    }
#define CREATES_CSR(name) CREATES_COMPRESSED(name, CSR, offsets_type, places_type)
#define CREATES_CSC(name) CREATES_COMPRESSED(name, CSC, places_type, offsets_type)
BOTH(CREATES_CSR, cusparseCreate, Csr)
BOTH(CREATES_CSC, cusparseCreate, Csc)

#define CREATES_COO(name)                                                                                           \
    EXPORT int COMPUTED(name)(struct descriptor **made, int64_t rows, int64_t columns, int64_t count, void *row,    \
                              void *column, void *values, int index_type, int base, int type) {                     \
        if (!is_index(index_type)) return WRONG;                                                                    \
        return make(made, &(struct descriptor){.kind = SPARSE_MATRIX, .format = COO, .rows = rows,                  \
                                               .columns = columns, .count = count, .row_places = row,               \
                                               .column_places = column, .values = values, .row_type = index_type,   \
                                               .column_type = index_type, .base = base, .type = type, .batch = 1}); \
    }
BOTH(CREATES_COO, cusparseCreate, Coo)

#define CREATES_BSR(name)                                                                                             \
    EXPORT int COMPUTED(name)(struct descriptor **made, int64_t rows, int64_t columns, int64_t count,                \
                              int64_t block_rows, int64_t block_columns, void *offsets, void *places, void *values,   \
                              int offsets_type, int places_type, int base, int type, int order) {                     \
        if (!is_index(offsets_type) || !is_index(places_type) || block_rows < 1 || block_columns < 1) return WRONG;   \
        return make(made, &(struct descriptor){                                                                       \
                              .kind = SPARSE_MATRIX, .format = BSR, .rows = rows * block_rows,                        \
                              .columns = columns * block_columns, .count = count, .row_places = offsets,              \
                              .column_places = places, .values = values, .row_type = offsets_type,                    \
                              .column_type = places_type, .base = base, .type = type, .order = order, .batch = 1,     \
                              .block_rows = block_rows, .block_columns = block_columns});                             \
    }
BOTH(CREATES_BSR, cusparseCreate, Bsr)

#define GETS_COMPRESSED(name, its_format)                                                                           \
    EXPORT int COMPUTED(name)(const struct descriptor *of, int64_t *rows, int64_t *columns, int64_t *count,         \
                              void **offsets, void **places, void **values, int *offsets_type, int *places_type,    \
                              int *base, int *type) {                                                               \
        if (!is_of(of, SPARSE_MATRIX) || of->format != (its_format)) return WRONG;                                  \
        bool by_rows = (its_format) == CSR;                                                                         \
        TELL(rows, of->rows);                                                                                       \
        TELL(columns, of->columns);                                                                                 \
        TELL(count, of->count);                                                                                     \
        TELL(offsets, by_rows ? of->row_places : of->column_places);                                                \
        TELL(places, by_rows ? of->column_places : of->row_places);                                                 \
        TELL(values, of->values);                                                                                   \
        TELL(offsets_type, by_rows ? of->row_type : of->column_type);                                               \
        TELL(places_type, by_rows ? of->column_type : of->row_type);                                                \
        TELL(base, of->base);                                                                                       \
        TELL(type, of->type);                                                                                       \
        return SUCCESS;                                                                                             \
    }
#define GETS_CSR(name) GETS_COMPRESSED(name, CSR)
#define GETS_CSC(name) GETS_COMPRESSED(name, CSC)
BOTH_GET(GETS_CSR, Csr)
BOTH_GET(GETS_CSC, Csc)

#define GETS_COO(name)                                                                                       \
    EXPORT int COMPUTED(name)(const struct descriptor *of, int64_t *rows, int64_t *columns, int64_t *count,  \
                              void **row, void **column, void **values, int *index_type, int *base,          \
                              int *type) {                                                                   \
        if (!is_of(of, SPARSE_MATRIX) || of->format != COO) return WRONG;                                    \
        TELL(rows, of->rows);                                                                                \
        TELL(columns, of->columns);                                                                          \
        TELL(count, of->count);                                                                              \
        TELL(row, of->row_places);                                                                           \
        TELL(column, of->column_places);                                                                     \
        TELL(values, of->values);                                                                            \
        TELL(index_type, of->row_type);                                                                      \
        TELL(base, of->base);                                                                                \
        TELL(type, of->type);                                                                                \
        return SUCCESS;                                                                                      \
    }
BOTH_GET(GETS_COO, Coo)

#define SETS_POINTERS(name, its_format)                                                                               \
    EXPORT int COMPUTED(name)(struct descriptor *of, void *first, void *second, void *values) {                      \
        if (!is_of(of, SPARSE_MATRIX) || of->format != (its_format)) return WRONG;                                    \
        of->row_places = (its_format) == CSC ? second : first;                                                        \
        of->column_places = (its_format) == CSC ? first : second;                                                     \
        of->values = values;                                                                                          \
        return SUCCESS;                                                                                               \
    }
SETS_POINTERS(cusparseCsrSetPointers, CSR)
SETS_POINTERS(cusparseCscSetPointers, CSC)
SETS_POINTERS(cusparseCooSetPointers, COO)

static int set_batch(struct descriptor *of, enum format format, int batch, int64_t rows, int64_t columns,
                     int64_t values) {
    if (!is_of(of, SPARSE_MATRIX) || of->format != (int32_t)format || batch < 1) return WRONG;
    of->batch = batch;
    of->row_stride = rows;
    of->column_stride = columns;
    of->value_stride = values;
    return SUCCESS;
}

EXPORT int COMPUTED(cusparseCsrSetStridedBatch)(struct descriptor *of, int batch, int64_t offsets, int64_t others) {
    return set_batch(of, CSR, batch, offsets, others, others);
}

EXPORT int COMPUTED(cusparseCooSetStridedBatch)(struct descriptor *of, int batch, int64_t stride) {
    return set_batch(of, COO, batch, stride, stride, stride);
}

EXPORT int COMPUTED(cusparseBsrSetStridedBatch)(struct descriptor *of, int batch, int64_t offsets, int64_t columns,
                                                int64_t values) {
    return set_batch(of, BSR, batch, offsets, columns, values);
}

#define GETS_NUMBER(name, of_kind, member)                                       \
    EXPORT int COMPUTED(name)(const struct descriptor *of, int *value) {         \
        if (!is_of(of, of_kind) || !value) return WRONG;                         \
        *value = of->member;                                                     \
        return SUCCESS;                                                          \
    }
GETS_NUMBER(cusparseSpMatGetFormat, SPARSE_MATRIX, format)
GETS_NUMBER(cusparseSpMatGetIndexBase, SPARSE_MATRIX, base)
GETS_NUMBER(cusparseSpMatGetStridedBatch, SPARSE_MATRIX, batch)

EXPORT int COMPUTED(cusparseSpMatGetSize)(const struct descriptor *of, int64_t *rows, int64_t *columns,
                                          int64_t *count) {
    if (!is_of(of, SPARSE_MATRIX)) return WRONG;
    TELL(rows, of->rows);
    TELL(columns, of->columns);
    TELL(count, of->count);
    return SUCCESS;
}

static bool is_attribute(const struct descriptor *of, int attribute, const void *content, size_t bytes) {
    return is_of(of, SPARSE_MATRIX) && attribute >= 0 && attribute < 2 && content && bytes == sizeof(int32_t);
}

EXPORT int COMPUTED(cusparseSpMatSetAttribute)(struct descriptor *of, int attribute, const void *from, size_t bytes) {
    if (!is_attribute(of, attribute, from, bytes)) return WRONG;
    memcpy(&of->attributes[attribute], from, bytes);
    return SUCCESS;
}

EXPORT int COMPUTED(cusparseSpMatGetAttribute)(const struct descriptor *of, int attribute, void *to, size_t bytes) {
    if (!is_attribute(of, attribute, to, bytes)) return WRONG;
    memcpy(to, &of->attributes[attribute], bytes);
    return SUCCESS;
}

// -- dense matrices --------------------------------------------------------------------------------------------------

#define CREATES_DENSE_MATRIX(name)                                                                                     \
    EXPORT int COMPUTED(name)(struct descriptor **made, int64_t rows, int64_t columns, int64_t ld, void *values,      \
                              int type, int order) {                                                                   \
        if (order != COLUMNS && order != ROWS) return WRONG;                                                           \
        if (ld < (order == COLUMNS ? rows : columns)) return WRONG;                                                    \
        return make(made, &(struct descriptor){.kind = DENSE_MATRIX, .rows = rows, .columns = columns, .count = ld,    \
                                               .values = values, .type = type, .order = order, .batch = 1});           \
    }
#define GETS_DENSE_MATRIX(name)                                                                                  \
    EXPORT int COMPUTED(name)(const struct descriptor *of, int64_t *rows, int64_t *columns, int64_t *ld,         \
                              void **values, int *type, int *order) {                                            \
        if (!is_of(of, DENSE_MATRIX)) return WRONG;                                                              \
        TELL(rows, of->rows);                                                                                    \
        TELL(columns, of->columns);                                                                              \
        TELL(ld, of->count);                                                                                     \
        TELL(values, of->values);                                                                                \
        TELL(type, of->type);                                                                                    \
        TELL(order, of->order);                                                                                  \
        return SUCCESS;                                                                                          \
    }
BOTH(CREATES_DENSE_MATRIX, cusparseCreate, DnMat)
BOTH_GET(GETS_DENSE_MATRIX, DnMat)

EXPORT int COMPUTED(cusparseDnMatSetStridedBatch)(struct descriptor *of, int batch, int64_t stride) {
    if (!is_of(of, DENSE_MATRIX) || batch < 1) return WRONG;
    of->batch = batch;
    of->value_stride = stride;
    return SUCCESS;
}

EXPORT int COMPUTED(cusparseDnMatGetStridedBatch)(const struct descriptor *of, int *batch, int64_t *stride) {
    if (!is_of(of, DENSE_MATRIX)) return WRONG;
    TELL(batch, of->batch);
    TELL(stride, of->value_stride);
    return SUCCESS;
}
