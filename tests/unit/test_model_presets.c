#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "model/transformer.h"

Test(presets, all_have_exactly_the_published_parameter_counts)
{
    const struct nw_preset *preset;
    size_t count = 0;

    for (; (preset = nw_preset_at(count)) != NULL; count++) {
        const struct nw_transformer *net = &preset->net;

        cr_expect(eq(u64, nw_transformer_parameter_count(net), preset->published_parameters), "%s",
                  net->name);
        cr_expect(eq(int, nw_transformer_check(net, net->name), NW_OK), "%s",
                  nw_last_error()->text);
        cr_expect(gt(sz, strlen(preset->source), 10), "%s", net->name);
    }
    cr_expect(eq(sz, count, nw_preset_count()));
    cr_expect(ge(sz, count, 100));
}
