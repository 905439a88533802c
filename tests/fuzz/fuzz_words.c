/* Texts of anybody's through the translation: no crash, within the room, no text used as a format,
 * and whole characters. The first byte is the room. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct nw_language *language;
    const size_t room = size > 0 ? 16 * (size_t)data[0] + 1 : 1;
    char *text = calloc(1, size + 1); /* cut at its first NUL */
    char *out = malloc(room), print[256];

    if (text == NULL || out == NULL || nw_language_find("zh", &language) != NW_OK)
        abort();
    if (size > 0)
        memcpy(text, data + 1, size - 1);
    nw_words_say(language, text, out, room);
    if (strlen(out) >= room)
        abort();
    nw_speak(language);
    if (strlen(nw_spoken(text)) > 8192 + strlen(text))
        abort();
    nw_print_to(print, sizeof print, "%s: cannot read: %s", text, text);
    if (strlen(print) >= sizeof print)
        abort();
    nw_speak(NULL);
    free(text);
    free(out);
    return 0;
}
