#include <criterion/criterion.h>
#include <string.h>

#include "cli/rest.h"

/* Words with spaces between them, as /proc/PID/cmdline has them. */
static size_t words_of(const char *text, char words[1024])
{
    const size_t length = strlen(text);

    memcpy(words, text, length + 1);
    for (size_t i = 0; i < length; i++)
        if (words[i] == ' ')
            words[i] = '\0';
    return length + 1;
}

static const struct nw_cli_lifeline_host hosts[] = {
    {"node1", 8, false}, {"node2", 8, false}, {"node3", 8, true}, {"node4", 8, false}};

Test(cli_rest, the_command_names_the_hosts_that_are_left_and_keeps_everything_else)
{
    static const struct {
        const char *launched, *program, *expected; /* NULL: no mpirun's */
    } rows[] = {
        {"mpirun -np 32 --hostfile hosts --map-by ppr:8:node nodeworth bench --cases pairs",
         "--cases pairs",
         "mpirun --host node1:8,node2:8,node4:8 -np 24 --map-by ppr:8:node nodeworth bench --cases "
         "pairs --resume"},
        {"/usr/bin/mpirun -n 32 -H node1:8,node2:8 wrap nodeworth bench -n 20 --resume --out r",
         "-n 20 --resume --out r",
         "/usr/bin/mpirun --host node1:8,node2:8,node4:8 -np 24 wrap nodeworth bench -n 20 "
         "--resume "
         "--out r"},
        {"mpirun --mca x $HOME;id nodeworth bench --out it's", "--out it's",
         "mpirun --host node1:8,node2:8,node4:8 -np 24 --mca x '$HOME;id' nodeworth bench --out "
         "'it'\\''s' --resume"},
        {"slurmstepd --cases pairs", "--cases pairs", NULL},
        {"mpirun nodeworth bench --cases coll", "--cases pairs", NULL},
        {"mpirun", "--cases pairs", NULL},
        {"mpirun -np", "", "mpirun --host node1:8,node2:8,node4:8 -np 24 --resume"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[1024], program[1024], text[4096], cut[64];
        const size_t length = words_of(rows[i].launched, words);
        const size_t program_length = rows[i].program[0] ? words_of(rows[i].program, program) : 0;
        const bool told = nw_cli_rest_command(words, length, program, program_length, hosts, 4,
                                              text, sizeof text);

        cr_assert_eq(told, rows[i].expected != NULL, "row %zu", i);
        if (told)
            cr_expect_str_eq(text, rows[i].expected);
        cr_expect_not(nw_cli_rest_command(words, length, program, program_length, hosts, 4, cut,
                                          sizeof cut / 2));
    }
}
