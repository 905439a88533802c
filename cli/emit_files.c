/* The files of an emission: which, and where to. */
#include "cli/emit_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/units.h"
#include "base/words.h"

#define MAX_PATH_LENGTH 1024

/* It goes into shell scripts and YAML: only what needs no quoting there. */
static nw_rc check_plain(const char *text, const char *option)
{
    static const char accepted[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789._/:@+-";

    if (text[0] == '\0' || text[0] == '-' || text[strspn(text, accepted)] != '\0')
        return nw_fail(NW_EUSAGE, "%s \"%.80s\": accepted: letters, digits and . _ / : @ + -",
                       option, text);
    return NW_OK;
}

static nw_rc write_file(const struct nw_emitter *emitter, const struct nw_emission *emission,
                        const char *folder)
{
    struct nw_atomic_file *file;
    char path[MAX_PATH_LENGTH];

    if (snprintf(path, sizeof path, "%s/%s", folder, emitter->file) >= (int)sizeof path)
        return nw_fail(NW_EUSAGE, "--out: the path is longer than %d characters",
                       MAX_PATH_LENGTH - 1);
    NW_TRY(nw_atomic_open(path, &file));
    const nw_rc rc = nw_emit(emitter, emission, nw_atomic_stream(file));

    if (rc != NW_OK) {
        nw_atomic_abandon(file);
        return rc;
    }
    NW_TRY(nw_atomic_commit(file));
    if (emitter->executable)
        chmod(path, 0755);
    printf("%-24s %s\n", emitter->file, emitter->title);
    return NW_OK;
}

struct wanted {
    const struct nw_emitter *items[16];
    size_t count;
};

static nw_rc read_wanted(const char *list, struct wanted *wanted)
{
    char copy[256], *rest = NULL;

    wanted->count = 0;
    if (list == NULL)
        return NW_OK;
    if (strlen(list) >= sizeof copy)
        return nw_fail(NW_EUSAGE, "--as: the list is longer than %zu characters", sizeof copy - 1);
    strcpy(copy, list);
    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (wanted->count == sizeof wanted->items / sizeof wanted->items[0])
            return nw_fail(NW_EUSAGE, "--as: more than %zu formats", wanted->count);
        NW_TRY(nw_emitter_find(word, &wanted->items[wanted->count++]));
    }
    return wanted->count > 0 ? NW_OK : nw_fail(NW_EUSAGE, "--as: \"%.40s\" names nothing", list);
}

/* Without a list: all that have such a plan. Where only what starts a job is left, the plan itself
 * is written nowhere: that is said. */
static void take_fitting(const struct nw_emission *emission, struct wanted *wanted)
{
    bool stated = false;

    for (size_t i = 0; i < nw_emitter_count; i++)
        if (nw_emitters[i].check(emission) == NW_OK) {
            wanted->items[wanted->count++] = &nw_emitters[i];
            stated = stated || nw_emitters[i].check != nw_emit_any;
        }
    for (size_t i = 0; i < nw_emitter_count && !stated; i++)
        if (nw_emitters[i].check(emission) != NW_OK)
            nw_print(stderr, "%s not written: %s\n", nw_emitters[i].file, nw_last_error()->text);
    nw_clear_error();
}

/* What takes no comments is marked beside itself. */
static void say_simulated(const struct nw_emitter *emitter, const struct nw_emission *emission)
{
    if (emission->simulated && !emitter->comments)
        fprintf(stderr, "%s: " NW_EMIT_SIMULATED "\n", emitter->file);
}

nw_rc nw_emit_files_check(const struct nw_emit_wishes *wishes)
{
    struct wanted wanted;

    NW_TRY(read_wanted(wishes->as, &wanted));
    NW_TRY(check_plain(wishes->script, "--script"));
    return check_plain(wishes->image, "--image");
}

nw_rc nw_emit_files(const struct nw_emit_wishes *wishes, struct nw_emission *emission)
{
    struct wanted wanted;

    NW_TRY(read_wanted(wishes->as, &wanted));
    emission->script = wishes->script;
    emission->image = wishes->image;
    if (wishes->as == NULL)
        take_fitting(emission, &wanted);
    for (size_t i = 0; i < wanted.count; i++) /* before anything is written */
        NW_TRY(wanted.items[i]->check(emission));
    for (size_t i = 0; i < wanted.count && (wishes->out != NULL || wanted.count == 1); i++)
        say_simulated(wanted.items[i], emission);
    if (wishes->out == NULL && wanted.count == 1)
        return nw_emit(wanted.items[0], emission, stdout);
    if (wishes->out == NULL)
        return nw_fail(NW_EUSAGE, "%zu files: give --out DIR, or one --as to have it printed",
                       wanted.count);
    NW_TRY(nw_make_directory(wishes->out));
    for (size_t i = 0; i < wanted.count; i++)
        NW_TRY(write_file(wanted.items[i], emission, wishes->out));
    return NW_OK;
}
