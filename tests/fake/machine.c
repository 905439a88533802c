#include "tests/fake/machine.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tests/fake/machine_keys.h"

const char *const fk_coll_names[FK_COLL_COUNT] = {
#define X(id, key) [id] = key,
    FK_COLL_MAP(X)
#undef X
};

static struct fk_machine machine_read;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

void fk_die(const char *format, ...)
{
    va_list arguments;
    fputs("SIMULATED GPUs: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit(2);
}

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

/* "[lane ring]" and the like: where the following keys go. */
static void open_section(struct fk_reader *reader, char *title)
{
    struct fk_machine *machine = reader->machine;
    char kind[16] = "", name[24] = "";
    if (sscanf(title, "%15s %23s", kind, name) < 1)
        fk_die("%s:%d: an empty section", reader->path, reader->line);
    reader->lane = NULL;
    reader->first_gpu = 0;
    reader->last_gpu = FK_MAX_GPUS - 1;
    if (strcmp(kind, "machine") == 0) {
        reader->section = FK_SECTION_MACHINE;
        return;
    }
    if (strcmp(kind, "gpu") == 0) {
        reader->section = FK_SECTION_GPU;
        if (name[0]) {
            char *end;
            const long number = strtol(name, &end, 10);
            if (*end || number < 0 || number >= FK_MAX_GPUS)
                fk_die("%s:%d: [gpu %s]; accepted: [gpu] for all, or [gpu 0] to [gpu %d]",
                       reader->path, reader->line, name, FK_MAX_GPUS - 1);
            reader->first_gpu = reader->last_gpu = (int)number;
        }
        return;
    }
    const bool wire = strcmp(kind, "wire") == 0;
    if ((!wire && strcmp(kind, "lane") != 0) || !name[0])
        fk_die("%s:%d: [%s]; accepted: [machine], [gpu], [gpu N], [lane NAME], [wire NAME]",
               reader->path, reader->line, title);
    reader->section = FK_SECTION_LANE;
    struct fk_lane *lanes = wire ? machine->wires : machine->lanes;
    int *count = wire ? &machine->wire_count : &machine->lane_count;
    for (int i = 0; i < *count; i++) /* an included file's: the keys below change it */
        if (strcmp(lanes[i].name, name) == 0)
            reader->lane = &lanes[i];
    if (reader->lane)
        return;
    if (*count == FK_MAX_LANES)
        fk_die("%s:%d: more than %d of [%s]", reader->path, reader->line, FK_MAX_LANES, kind);
    reader->lane = &lanes[(*count)++];
    snprintf(reader->lane->name, sizeof reader->lane->name, "%s", name);
}

static void read_file(struct fk_machine *machine, const char *path, int depth)
{
    struct fk_reader reader = {.machine = machine, .path = path, .last_gpu = FK_MAX_GPUS - 1};
    char text[512];
    FILE *file = fopen(path, "r");
    if (!file)
        fk_die("%s: no such machine file", path);
    while (fgets(text, sizeof text, file)) {
        reader.line++;
        text[strcspn(text, "#\n")] = '\0';
        char *line = trim(text);
        char *const equal = strchr(line, '=');
        const size_t length = strlen(line);
        if (length == 0)
            continue;
        if (line[0] == '[' && line[length - 1] == ']') {
            line[length - 1] = '\0';
            open_section(&reader, line + 1);
            continue;
        }
        if (!equal)
            fk_die("%s:%d: \"%s\" is neither [section] nor key = value", path, reader.line, line);
        *equal = '\0';
        const char *key = trim(line), *value = trim(equal + 1);
        if (strcmp(key, "include") == 0) {
            char other[512];
            const char *slash = strrchr(path, '/');
            if (depth > 4)
                fk_die("%s:%d: files include each other", path, reader.line);
            snprintf(other, sizeof other, "%.*s%s",
                     value[0] == '/' ? 0
                     : slash         ? (int)(slash - path) + 1
                                     : 0,
                     path, value);
            read_file(machine, other, depth + 1);
            continue;
        }
        fk_read_key(&reader, key, value);
    }
    fclose(file);
}

static void read_machine(void)
{
    const char *name = getenv("FAKE_MACHINE"), *folder = getenv("FAKE_MACHINES");
    char path[512];
    if (!name || !name[0])
        fk_die("FAKE_MACHINE names no machine file; start the command with tests/fake/with-gpus");
    if (strchr(name, '/') || !folder)
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, "%s/%s.machine", folder, name);
    struct fk_machine *machine = &machine_read;
    const char *base = strrchr(path, '/');
    snprintf(machine->name, sizeof machine->name, "%.60s", base ? base + 1 : path);
    machine->name[strcspn(machine->name, ".")] = '\0';
    for (int i = 0; i < FK_MAX_GPUS; i++)
        for (int k = 0; k < FK_MAX_LINKS; k++)
            machine->gpus[i].link_up[k] = true;
    read_file(machine, path, 0);
    fk_check_machine(machine, path);
}

const struct fk_machine *fk_machine(void)
{
    pthread_once(&machine_once, read_machine);
    return &machine_read;
}

static bool holds_one(const char *condition);

/* "NAME=A|B or OTHER=C". */
static bool holds(const char *condition)
{
    char one[96];
    for (;;) {
        const char * or = strstr(condition, " or ");
        snprintf(one, sizeof one, "%.*s", or ? (int)(or -condition) : (int)sizeof one - 1,
                 condition);
        if (holds_one(one))
            return true;
        if (! or)
            return false;
        condition = or +4;
    }
}

/* "NAME=A|B": the variable has one of the values (case aside, as NCCL reads its own). "NAME!=A":
 * it is unset or has another. */
static bool holds_one(const char *condition)
{
    char name[96];
    const size_t length = strcspn(condition, "!=");
    snprintf(name, sizeof name, "%.*s", (int)length, condition);
    const bool wanted = condition[length] == '=';
    const char *values = condition + length + (wanted ? 1 : 2), *have = getenv(name);
    bool found = false;
    while (have && *values) {
        const size_t n = strcspn(values, "|");
        found |= strlen(have) == n && strncasecmp(have, values, n) == 0;
        values += n + (values[n] == '|');
    }
    return found == wanted;
}

static const struct fk_lane *choose(const struct fk_lane *lanes, int count)
{
    for (int i = 0; i < count; i++) {
        bool all = true;
        for (int k = 0; k < lanes[i].when_count; k++)
            all &= holds(lanes[i].when[k]);
        if (all)
            return &lanes[i];
    }
    fk_die("no [lane] or [wire] of the machine file holds in this environment; end it with one "
           "that has no \"when\"");
}

const struct fk_lane *fk_machine_lane(const struct fk_machine *machine)
{
    return choose(machine->lanes, machine->lane_count);
}

const struct fk_lane *fk_machine_wire(const struct fk_machine *machine)
{
    return choose(machine->wires, machine->wire_count);
}

void fk_gpu_uuid(const struct fk_machine *machine, int gpu, unsigned char uuid[16])
{
    char text[160] = "SIMULATED";
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    gethostname(text, sizeof text - 1);
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    for (const char *c = machine->name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    memcpy(uuid, "SIMULA", 6); /* 53494d55-4c41-… in the text form */
    memcpy(uuid + 6, &hash, 8);
    uuid[14] = 0;
    uuid[15] = (unsigned char)gpu;
}

static int gpu_of_entry(const struct fk_machine *machine, const char *entry, size_t length)
{
    char text[64], want[64];
    snprintf(want, sizeof want, "%.*s", (int)length, entry);
    if (strncmp(want, "GPU-", 4) == 0) { /* any prefix that names one GPU */
        int found = -1;
        for (int g = 0; g < machine->gpu_count; g++) {
            unsigned char u[16];
            size_t at = 4;
            strcpy(text, "GPU-");
            fk_gpu_uuid(machine, g, u);
            for (int i = 0; i < 16; i++)
                at += (size_t)sprintf(text + at, "%s%02x",
                                      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
            if (strncmp(text, want, strlen(want)) == 0)
                found = found == -1 ? g : FK_MAX_GPUS;
        }
        return found < FK_MAX_GPUS ? found : -1;
    }
    char *end;
    const long number = strtol(want, &end, 10);
    return want[0] && !*end && number >= 0 && number < machine->gpu_count ? (int)number : -1;
}

int fk_visible_gpus(const struct fk_machine *machine, int gpus_out[FK_MAX_GPUS])
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0;
    if (!list) {
        for (; count < machine->gpu_count; count++)
            gpus_out[count] = count;
        return count;
    }
    while (*list && count < FK_MAX_GPUS) {
        const size_t length = strcspn(list, ",");
        const int gpu = gpu_of_entry(machine, list, length);
        bool twice = false;
        for (int i = 0; i < count; i++)
            twice |= gpus_out[i] == gpu;
        if (twice)
            return 0; /* the driver shows none then */
        if (gpu < 0)
            break; /* and those before the first bad entry otherwise */
        gpus_out[count++] = gpu;
        list += length + (list[length] == ',');
    }
    return count;
}
