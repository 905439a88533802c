/* What the topologies of one machine say together. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "results/audit_private.h"
#include "topo/product.h"

/* A reader that found its file cut off. */
static bool is_cut(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->findings.count; i++)
        if (strcmp(topo->findings.items[i].code, "file-cut") == 0)
            return true;
    return false;
}

/* Devices of the kind; those whose rate or size is known count once more. */
static int knowledge_of(const struct nw_topo *topo, nw_node_kind kind)
{
    int sum = 0;

    for (size_t i = 0; i < topo->node_count; i++) {
        const struct nw_topo_node *node = &topo->nodes[i];

        if (node->kind == kind)
            sum += 1 + (node->rate_bits_per_s > 0) + (node->memory_bytes > 0);
    }
    return sum;
}

const struct nw_topo *nw_machine_topo(const struct nw_machine *machine, nw_node_kind kind,
                                      bool *complete_out)
{
    const struct nw_topo *best = NULL;
    int most = -1;

    *complete_out = false;
    for (size_t i = 0; i < machine->topo_count; i++) {
        const struct nw_topo *topo = machine->topos[i];
        const int knowledge = knowledge_of(topo, kind);
        const bool partial = (topo->gaps & NW_TOPO_PARTIAL) != 0;

        if ((topo->gaps & NW_TOPO_NO_IO) != 0 || (partial && knowledge == 0))
            continue;
        /* A matrix or list of GPUs or ports has all of them, unless it is cut off. */
        *complete_out = *complete_out || !partial || (kind != NW_NODE_DISK && !is_cut(topo));
        if (knowledge > most) {
            most = knowledge;
            best = topo;
        }
    }
    return best;
}

const char *nw_machine_text(const struct nw_machine *machine, nw_fact_id id)
{
    const char *text = NULL;

    for (size_t i = 0; i < machine->topo_count && text == NULL; i++)
        if (machine->topos[i]->node_count > 0)
            text = nw_topo_text(machine->topos[i], 0, id);
    return text;
}

double nw_machine_number(const struct nw_machine *machine, nw_fact_id id)
{
    double number = NAN;

    for (size_t i = 0; i < machine->topo_count && isnan(number); i++)
        if (machine->topos[i]->node_count > 0)
            number = nw_topo_number(machine->topos[i], 0, id);
    return number;
}

double nw_machine_least(const struct nw_machine *machine, nw_fact_id id, const char **gpu_out,
                        int *known_out)
{
    double least = NAN;
    int known = 0;

    for (size_t i = 0; i < machine->topo_count && known == 0; i++) {
        const struct nw_topo *topo = machine->topos[i];

        for (size_t node = 0; node < topo->node_count; node++) {
            const double number =
                topo->nodes[node].kind == NW_NODE_GPU ? nw_topo_number(topo, (int)node, id) : NAN;

            known += isfinite(number);
            if (isfinite(number) && !(number >= least)) {
                least = number;
                if (gpu_out != NULL)
                    *gpu_out = topo->nodes[node].name;
            }
        }
    }
    if (known_out != NULL)
        *known_out = known;
    return least;
}

const struct nw_gpu *nw_machine_product(const struct nw_machine *machine, char why[320])
{
    why[0] = '\0';
    for (size_t i = 0; i < machine->topo_count; i++) {
        const struct nw_topo *topo = machine->topos[i];

        for (size_t node = 0; node < topo->node_count; node++) {
            struct nw_gpu_product product;
            struct nw_gpu_name named, found;

            if (topo->nodes[node].kind != NW_NODE_GPU || topo->nodes[node].model[0] == '\0')
                continue;
            nw_gpu_identify(topo, (int)node, &product);
            if (product.gpu == NULL)
                continue;
            if (product.contradiction[0] != '\0')
                snprintf(why, 320, "%s", product.contradiction);
            if (product.contradiction[0] != '\0' && product.gpu != product.named)
                return product.gpu;
            /* "NVIDIA H800": a module and a card have this name. */
            nw_gpu_name_of(topo->nodes[node].model, true, &named);
            nw_gpu_name_of(product.gpu->name, false, &found);
            if (product.fit_count == 1 && found.form != NW_GPU_FORM_UNKNOWN &&
                found.form != named.form) {
                snprintf(why, 320, "by %s it is %s", product.decided, product.gpu->name);
                return product.gpu;
            }
        }
    }
    return NULL;
}

int nw_version_compare(const char *a, const char *b)
{
    while (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
        char *a_end, *b_end;
        const unsigned long mine = strtoul(a, &a_end, 10), other = strtoul(b, &b_end, 10);

        if (mine != other)
            return mine < other ? -1 : 1;
        if (*a_end != '.' || *b_end != '.')
            break;
        a = a_end + 1;
        b = b_end + 1;
    }
    return 0;
}

bool nw_has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);

    for (const char *at = strcasestr(text, word); at != NULL && length > 0;
         at = strcasestr(at + 1, word)) {
        const bool starts = at == text || !isalnum((unsigned char)at[-1]);

        if (starts && !isalnum((unsigned char)at[length]))
            return true;
    }
    return false;
}
