#include "cli/rest.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/fleet.h"
#include "cli/cli.h"
#include "results/results.h"

#define HOSTS_MAX  1024
#define WORDS_MAX  (1u << 20)
#define LAUNCHER_S 10

/* Options of mpirun that say where the ranks go; each has an argument. */
static bool names_hosts(const char *word)
{
    static const char *const options[] = {"-np",
                                          "--np",
                                          "-n",
                                          "--n",
                                          "-c",
                                          "-H",
                                          "-host",
                                          "--host",
                                          "-hostfile",
                                          "--hostfile",
                                          "-machinefile",
                                          "--machinefile",
                                          "--default-hostfile"};

    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(word, options[i]) == 0)
            return true;
    return false;
}

struct text {
    char *at;
    size_t size, length;
};

static void add(struct text *text, const char *bytes)
{
    const size_t length = strlen(bytes);

    if (text->length + length < text->size)
        memcpy(text->at + text->length, bytes, length + 1);
    text->length += length;
}

/* As a shell takes it. */
static void add_word(struct text *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./,:@%";

    if (text->length > 0)
        add(text, " ");
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        add(text, word);
        return;
    }
    add(text, "'");
    for (const char *c = word; *c != '\0'; c++)
        add(text, *c == '\'' ? "'\\''" : (char[]){*c, '\0'});
    add(text, "'");
}

static void add_hosts(struct text *text, const struct nw_cli_lifeline_host *hosts, int count)
{
    char word[128];
    int ranks = 0;

    add(text, " --host ");
    for (int i = 0, told = 0; i < count; i++) {
        if (hosts[i].lost)
            continue;
        ranks += hosts[i].rank_count;
        snprintf(word, sizeof word, "%s%.64s:%d", told++ > 0 ? "," : "", hosts[i].name,
                 hosts[i].rank_count);
        add(text, word);
    }
    snprintf(word, sizeof word, " -np %d", ranks);
    add(text, word);
}

static bool has_word(const char *words, size_t length, const char *wanted)
{
    for (size_t at = 0; at < length; at += strlen(words + at) + 1)
        if (strcmp(words + at, wanted) == 0)
            return true;
    return false;
}

static bool is_mpirun(const char *name)
{
    return strcmp(name, "mpirun") == 0 || strcmp(name, "mpiexec") == 0 ||
           strcmp(name, "orterun") == 0;
}

bool nw_cli_rest_command(const char *words, size_t length, const char *program,
                         size_t program_length, const struct nw_cli_lifeline_host *hosts,
                         int host_count, char *text, size_t size)
{
    struct text out = {.at = text, .size = size};
    const char *name = strrchr(words, '/') != NULL && length > 0 ? strrchr(words, '/') + 1 : words;

    if (length <= program_length || words[length - 1] != '\0' ||
        memcmp(words + length - program_length, program, program_length) != 0 || !is_mpirun(name))
        return false;
    add_word(&out, words);
    add_hosts(&out, hosts, host_count);
    for (size_t at = strlen(words) + 1; at < length; at += strlen(words + at) + 1) {
        if (at < length - program_length && names_hosts(words + at))
            at += strlen(words + at) + 1; /* and its argument */
        else
            add_word(&out, words + at);
    }
    if (!has_word(program, program_length, "--resume"))
        add_word(&out, "--resume");
    return out.length < size;
}

static size_t read_words(const char *path, char *words, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t length;

    if (file == NULL)
        return 0;
    length = fread(words, 1, size, file);
    fclose(file);
    return length;
}

static const char *host_of(const struct nw_cli_lifeline *line, int rank, char name[64])
{
    if (!nw_cli_lifeline_host_of(line, rank, name))
        snprintf(name, 64, "?");
    return name;
}

static nw_rc write_losses(const struct nw_lifeline *lifeline, const struct nw_cli_lifeline *line,
                          uint32_t count)
{
    struct nw_results_writer *writer;
    nw_rc rc = NW_OK, closed;
    char host[64];

    NW_TRY(nw_results_create(lifeline->results, true, &writer));
    for (uint32_t i = atomic_load(&lifeline->noted); i < count && rc == NW_OK; i++) {
        struct nw_findings list = {0};

        rc = nw_findings_add(&list, NW_FINDING_FAIL, NW_FLEET_HOST_FAILED,
                             host_of(line, lifeline->lost[i].rank, host),
                             "repair it, or leave it out; bench --resume then measures its pairs",
                             "it was lost while its pairs were measured: rank %d: %.115s",
                             lifeline->lost[i].rank, lifeline->lost[i].text);
        if (rc == NW_OK)
            rc = nw_results_write_finding(writer, &list.items[0]);
        nw_findings_free(&list);
    }
    closed = nw_results_close(writer);
    return rc != NW_OK ? rc : closed;
}

static void tell_command(const struct nw_cli_lifeline *line, const char *program,
                         size_t program_length)
{
    struct nw_cli_lifeline_host *hosts = calloc(HOSTS_MAX, sizeof *hosts);
    char *words = calloc(1, WORDS_MAX), *text = calloc(1, WORDS_MAX);
    char path[64];

    if (hosts != NULL && words != NULL && text != NULL && program != NULL) {
        const int count = nw_cli_lifeline_hosts(line, hosts, HOSTS_MAX);
        size_t length;

        snprintf(path, sizeof path, "/proc/%d/cmdline", (int)getppid());
        length = read_words(path, words, WORDS_MAX - 1);
        if (nw_cli_rest_command(words, length, program, program_length, hosts, count, text,
                                WORDS_MAX))
            nw_message("what the other hosts have not measured yet: %s", text);
        else
            nw_message("what the other hosts have not measured yet: start the same again on them, "
                       "with --resume");
    }
    free(text);
    free(words);
    free(hosts);
}

void nw_cli_tell_rest(const struct nw_lifeline *lifeline, const struct nw_cli_lifeline *line,
                      const char *program, size_t program_length)
{
    const uint32_t count = atomic_load(&lifeline->lost_count);
    char host[64];

    for (uint32_t i = 0; i < count; i++)
        nw_message("%s rank %d was lost: %s", host_of(line, lifeline->lost[i].rank, host),
                   lifeline->lost[i].rank, lifeline->lost[i].text);
    if (lifeline->results[0] == '\0')
        return;
    if (write_losses(lifeline, line, count) != NW_OK)
        nw_message("%s", nw_last_error()->text);
    tell_command(line, program, program_length);
}

/* ---- the launcher ------------------------------------------------------------------------------
 */

/* Of /proc/PID/stat: the name, and when it was started; false: no such process. */
static bool read_process(pid_t pid, char name[32], unsigned long long *started_out)
{
    char path[64], line[1024];
    const char *open, *close;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    line[read_words(path, line, sizeof line - 1)] = '\0';
    open = strchr(line, '(');
    close = strrchr(line, ')');
    if (open == NULL || close == NULL)
        return false;
    snprintf(name, 32, "%.*s", (int)(close - open - 1), open + 1);
    /* the 22nd field; the state, behind the name, is the 3rd */
    return sscanf(close + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                  "%*d %*d %llu",
                  started_out) == 1;
}

void nw_cli_end_launcher(void)
{
    const struct timespec pause = {.tv_sec = 1};
    const pid_t launcher = getppid();
    unsigned long long started, now;
    char name[32];

    if (!read_process(launcher, name, &started) || !is_mpirun(name))
        return;
    fflush(NULL);
    if (fork() != 0)
        return;
    setsid();
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        close(fd); /* which the launcher reads to their end */
    for (int s = 0; s < LAUNCHER_S; s++) {
        nanosleep(&pause, NULL);
        if (!read_process(launcher, name, &now) || now != started)
            _exit(0);
    }
    kill(launcher, SIGKILL);
    _exit(0);
}
