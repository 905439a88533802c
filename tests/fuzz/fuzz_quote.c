/* The quote parser on any bytes: no crash, and what it takes is in range and told in JSON; its
 * audit without evidence meets nothing, and makes a letter in each language. */
#include <math.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/letter.h"
#include "results/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_letters(const struct nw_quote *quote)
{
    static const char *const languages[] = {"en", "zh"};
    struct nw_audit audit;

    if (nw_audit_make(&(struct nw_audit_input){.quote = quote}, &audit) != NW_OK) {
        if (nw_last_error()->rc != NW_EUSAGE) /* prices alone */
            abort();
        return;
    }
    for (size_t i = 0; i < audit.row_count; i++)
        if (audit.rows[i].verdict != NW_AUDIT_NOT_MEASURED && !audit.rows[i].arithmetic &&
            quote->has_nvswitch != 0)
            abort();
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        char *text = NULL;
        size_t length;
        FILE *stream = open_memstream(&text, &length);

        if (stream == NULL ||
            nw_report_letter(stream, &(struct nw_letter){.audit = &audit,
                                                         .language = languages[i],
                                                         .version = "0"}) != NW_OK)
            abort();
        fclose(stream);
        free(text);
    }
    nw_audit_free(&audit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_quote quote;
    json_t *json;

    if (nw_quote_parse((const char *)data, size, "fuzz", &quote) != NW_OK) {
        /* First cause, first line: every refusal says where. */
        if (nw_last_error()->rc != NW_EUSAGE || strncmp(nw_last_error()->text, "fuzz:", 5) != 0)
            abort();
        return 0;
    }
    if (quote.gpu_count < 0 || quote.gpu_count > 1024 || isinf(quote.ram_bytes))
        abort();
    if (nw_quote_to_json(&quote, &json) != NW_OK)
        abort();
    json_decref(json);
    write_letters(&quote);
    return 0;
}
