#include "kernels/dtype.h"

#include <string.h>

#include "base/units.h"
#include "kernels/half.h"

static const struct {
    size_t bytes;
    uint64_t exact;
} dtypes[] = {
#define X(type, name, size, limit) [type] = {.bytes = size, .exact = limit},
    NW_DTYPE_MAP(X)
#undef X
};

const char *const nw_dtype_names[] = {
#define X(type, name, bytes, exact) [type] = name,
    NW_DTYPE_MAP(X)
#undef X
        [NW_DTYPE_COUNT] = NULL,
};

const char *const nw_redop_names[] = {
#define X(op, name) [op] = name,
    NW_REDOP_MAP(X)
#undef X
        [NW_REDOP_COUNT] = NULL,
};

size_t nw_dtype_bytes(nw_dtype type)
{
    return dtypes[type].bytes;
}

uint64_t nw_dtype_exact(nw_dtype type)
{
    return dtypes[type].exact;
}

const char *nw_dtype_name(nw_dtype type)
{
    return nw_dtype_names[type];
}

const char *nw_redop_name(nw_redop op)
{
    return nw_redop_names[op];
}

static nw_rc parse_name(const char *what, const char *text, const char *const *names,
                        int *index_out)
{
    char accepted[256];
    for (int i = 0; names[i]; i++) {
        if (!strcmp(text, names[i])) {
            *index_out = i;
            return NW_OK;
        }
    }
    return nw_fail(NW_EUSAGE, "\"%s\" is no %s; accepted: %s", text, what,
                   nw_join_names(accepted, sizeof accepted, names));
}

nw_rc nw_dtype_parse(const char *text, nw_dtype *type_out)
{
    int index;
    NW_TRY(parse_name("element type", text, nw_dtype_names, &index));
    *type_out = (nw_dtype)index;
    return NW_OK;
}

nw_rc nw_redop_parse(const char *text, nw_redop *op_out)
{
    int index;
    NW_TRY(parse_name("reduction", text, nw_redop_names, &index));
    *op_out = (nw_redop)index;
    return NW_OK;
}

double nw_dtype_value(nw_dtype type, const void *array, uint64_t index)
{
    switch (type) {
    case NW_INT8:
        return ((const int8_t *)array)[index];
    case NW_UINT8:
        return ((const uint8_t *)array)[index];
    case NW_INT32:
        return ((const int32_t *)array)[index];
    case NW_UINT32:
        return ((const uint32_t *)array)[index];
    case NW_INT64:
        return (double)((const int64_t *)array)[index];
    case NW_UINT64:
        return (double)((const uint64_t *)array)[index];
    case NW_HALF:
        return nw_half_to_float(((const uint16_t *)array)[index]);
    case NW_FLOAT:
        return ((const float *)array)[index];
    case NW_DOUBLE:
        return ((const double *)array)[index];
    case NW_BFLOAT16:
        return nw_bfloat16_to_float(((const uint16_t *)array)[index]);
    case NW_DTYPE_COUNT:
        break;
    }
    return 0;
}
