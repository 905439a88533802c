/* "4xRTX 4090:…@12": what is to be rented, from one word. */
#include "model/infer.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "model/measured.h"
#include "model/platform.h"
#include "model/slice.h"

#define MAX_GPUS      1024
#define GPUS_PER_NODE 8
#define ACCEPTED      "accepted: [COUNTx]GPU[:MIG-SLICE][@PRICE per GPU and hour], such as 4xRTX-4090@12"

/* "4x" or "4×" in front of the name; without it, one GPU. */
static nw_rc take_count(const char **at, const char *whole, int *count_out)
{
    static const char *const signs[] = {"x", "X", "*", "\xc3\x97"};
    size_t digits = strspn(*at, "0123456789");
    char number[16];
    uint64_t count;

    *count_out = 1;
    for (size_t i = 0; digits > 0 && i < sizeof signs / sizeof signs[0]; i++) {
        const size_t length = strlen(signs[i]);

        if (strncmp(*at + digits, signs[i], length) != 0)
            continue;
        if (digits >= sizeof number)
            digits = sizeof number - 1;
        memcpy(number, *at, digits);
        number[digits] = '\0';
        if (nw_parse_u64(number, 1, MAX_GPUS, &count) != NW_OK)
            return nw_fail(NW_EUSAGE, "\"%.80s\": %s GPUs; accepted: 1 to %d", whole, number,
                           MAX_GPUS);
        *count_out = (int)count;
        *at += strspn(*at, "0123456789") + length;
        return NW_OK;
    }
    return NW_OK;
}

static nw_rc take_price(char *text, const char *whole, double *price_out)
{
    char *sign = strrchr(text, '@');

    *price_out = NAN;
    if (sign == NULL)
        return NW_OK;
    *sign = '\0';
    if (nw_parse_double(sign + 1, 0, 1e9, price_out) != NW_OK)
        return nw_fail(NW_EUSAGE, "\"%.80s\": \"%.20s\" is no price; " ACCEPTED, whole, sign + 1);
    return NW_OK;
}

static bool is_measured(const struct nw_results *results, const struct nw_gpu *gpu)
{
    const char *name = results != NULL ? nw_measured_gpu(results) : NULL;
    const struct nw_gpu *measured;

    if (name == NULL)
        return false;
    if (nw_gpu_find(name, &measured) == NW_OK)
        return measured == gpu;
    nw_clear_error();
    return false;
}

/* Curves and topology come from all runs, so one pretended machine taints the rest. */
static bool is_simulated(const struct nw_results *results)
{
    for (size_t r = 0; r < results->run_count; r++) {
        const struct nw_run *run = &results->runs[r];

        if (run->context.simulated)
            return true;
        for (size_t i = 0; i < run->record_count; i++)
            if (run->records[i].simulated)
                return true;
    }
    return false;
}

static nw_rc choose_platform(const struct nw_results *results, struct nw_server *server)
{
    const struct nw_model_request request = {.gpu = server->gpu.name,
                                             .gpus_per_node = server->gpus_per_node};
    const struct nw_precision *precision = nw_precision_named("fp16");

    NW_TRY(nw_platform_choose(&request, results, precision, &server->platform));
    server->platform.fabric.gpus_per_node = server->gpus_per_node;
    return NW_OK;
}

nw_rc nw_server_parse(const char *text, const struct nw_results *results,
                      const struct nw_curves *curves, struct nw_server *server_out)
{
    struct nw_server server = {.gpus_per_node = GPUS_PER_NODE};
    const struct nw_gpu *gpu;
    const char *at = text;
    char name[80];

    NW_TRY(take_count(&at, text, &server.gpu_count));
    if (strlen(at) == 0 || strlen(at) >= sizeof name)
        return nw_fail(NW_EUSAGE, "\"%.80s\" names no GPU; " ACCEPTED, text);
    strcpy(name, at);
    NW_TRY(take_price(name, text, &server.price_per_gpu_hour));
    char *slice = strchr(name, ':');

    if (slice != NULL)
        *slice++ = '\0';
    NW_TRY(nw_gpu_find(name, &gpu));
    if (!(gpu->hbm_bytes_per_s > 0) || !(gpu->fp16_flops > 0))
        return nw_fail(NW_EUSAGE, "%s: the catalogue lacks its memory or compute rate", gpu->name);
    server.gpu = *gpu;
    server.measured = slice == NULL && is_measured(results, gpu);
    NW_TRY(choose_platform(server.measured ? results : NULL, &server));
    server.simulated = server.measured && (is_simulated(results) ||
                                           nw_measured_is_simulated(&server.platform.measured));
    if (server.measured && curves != NULL && curves->count > 0)
        server.platform.fabric.curves = curves;
    if (slice != NULL) {
        NW_TRY(nw_gpu_slice(gpu, slice, &server.gpu));
        server.sliced = true;
        server.platform.memory_bytes = server.gpu.memory_bytes;
        server.platform.hbm_bytes_per_s = server.gpu.hbm_bytes_per_s;
        server.platform.peak_flops *= server.gpu.fp16_flops / gpu->fp16_flops;
    }
    snprintf(server.name, sizeof server.name, "%dx %s%s%s", server.gpu_count, gpu->name,
             slice != NULL ? " " : "", slice != NULL ? slice : "");
    *server_out = server;
    return NW_OK;
}
