/* The reading process: a line of JSON before each phase and one behind it, on descriptor 3. */
#include "cli/check_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/json.h"
#include "bench/disk.h"
#include "cli/check_load.h"
#include "cli/cli.h"
#include "topo/system.h"
#include "topo/topo.h"

#define PYTHON_LIMIT_S 40

struct order {
    struct nw_check_wish wish;
    int parent;
};

static const struct nw_option rows[] = {
    {.name = "python", .type = NW_OPTION_FLAG, .offset = offsetof(struct order, wish.python)},
    {.name = "load", .type = NW_OPTION_FLAG, .offset = offsetof(struct order, wish.load)},
    {.name = "disk",
     .argument = "DIR",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct order, wish.disk)},
    {.name = "parent",
     .argument = "PID",
     .type = NW_OPTION_INT,
     .min = 0,
     .max = 1 << 30,
     .offset = offsetof(struct order, parent)},
};

static nw_rc send_line(json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    size_t length, sent = 0;

    json_decref(json);
    if (text == NULL)
        return nw_fail(NW_ENOMEM, "no memory for what was read");
    length = strlen(text);
    text[length++] = '\n'; /* over the NUL */
    while (sent < length) {
        const ssize_t n = write(NW_CHILD_FIRST_FD, text + sent, length - sent);

        if (n < 0 && errno != EINTR)
            break;
        sent += n > 0 ? (size_t)n : 0;
    }
    free(text);
    return sent == length ? NW_OK : nw_fail(NW_EIO, "nobody takes what was read");
}

static nw_rc send_topology(const struct nw_topo *topo)
{
    json_t *json = json_object(), *topology;
    nw_rc rc = nw_topo_to_json(topo, &topology);

    if (rc == NW_OK)
        rc = nw_json_set_new(json, "topology", topology);
    if (rc != NW_OK) {
        json_decref(json);
        return rc;
    }
    return send_line(json);
}

static nw_rc read_machine(const struct order *order, struct nw_topo **topo)
{
    (void)order;
    return nw_topo_read_live(topo);
}

static nw_rc read_system(const struct order *order, struct nw_topo **topo)
{
    (void)order;
    return nw_system_read(&(struct nw_system_places){.root = ""}, *topo);
}

static nw_rc read_log(const struct order *order, struct nw_topo **topo)
{
    (void)order;
    return nw_kernel_log_live(*topo);
}

static nw_rc read_python(const struct order *order, struct nw_topo **topo)
{
    (void)order;
    return nw_system_probe_python(*topo, NULL, PYTHON_LIMIT_S);
}

static nw_rc load_gpus(const struct order *order, struct nw_topo **topo)
{
    (void)order;
    return nw_check_load(*topo);
}

static nw_rc measure_disk(const struct order *order, struct nw_topo **topo)
{
    struct nw_disk_result result;
    nw_rc rc;

    rc = nw_disk_measure(&(struct nw_disk_wish){.path = order->wish.disk}, &result);
    if (rc == NW_OK) {
        rc = nw_disk_facts(*topo, &result);
        nw_disk_free(&result);
    } else if (rc == NW_EUSAGE && nw_disk_look(order->wish.disk, &result) == NW_OK) {
        /* Mounted read-only, full: where the data lie is known all the same. */
        rc = nw_topo_not_checked(*topo, "speed of the storage: %s", nw_last_error()->text);
        if (rc == NW_OK)
            rc = nw_disk_facts(*topo, &result);
        nw_disk_free(&result);
    }
    return rc;
}

static bool wants_all(const struct nw_check_wish *wish)
{
    (void)wish;
    return true;
}

static bool wants_python(const struct nw_check_wish *wish)
{
    return wish->python;
}

static bool wants_load(const struct nw_check_wish *wish)
{
    return wish->load;
}

static bool wants_disk(const struct nw_check_wish *wish)
{
    return wish->disk != NULL;
}

static const struct phase {
    const char *title;
    double limit_s; /* then it is taken for hung: healthy ones need a tenth of it */
    bool (*wanted)(const struct nw_check_wish *wish);
    nw_rc (*run)(const struct order *order, struct nw_topo **topo);
} phases[] = {
    {"reading devices (hwloc, NVML, RDMA)", 45, wants_all, read_machine},
    {"reading the system", 15, wants_all, read_system},
    {"reading the kernel's log", 15, wants_all, read_log},
    {"asking PyTorch", PYTHON_LIMIT_S + 5, wants_python, read_python},
    {"loading the GPUs' links", 90, wants_load, load_gpus},
    {"measuring the disk", 60, wants_disk, measure_disk},
};

static nw_rc announce(const struct phase *phase)
{
    json_t *json = json_object();
    nw_rc rc = nw_json_set_text(json, "phase", phase->title);

    if (rc == NW_OK)
        rc = nw_json_set_real(json, "limit_s", phase->limit_s);
    if (rc == NW_OK)
        return send_line(json);
    json_decref(json);
    return rc;
}

static nw_rc tell_failure(const struct phase *phase)
{
    json_t *json = json_object();
    nw_rc rc = nw_json_set_text(json, "failed", phase->title);

    if (rc == NW_OK)
        rc = nw_json_set_text(json, "text", nw_last_error()->text);
    if (rc == NW_OK)
        return send_line(json);
    json_decref(json);
    return rc;
}

static nw_rc read_all(const struct order *order)
{
    struct nw_topo *topo = NULL;
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < sizeof phases / sizeof *phases && rc == NW_OK; i++) {
        if (!phases[i].wanted(&order->wish))
            continue;
        rc = announce(&phases[i]);
        if (rc != NW_OK)
            break;
        rc = phases[i].run(order, &topo) == NW_OK ? send_topology(topo) : tell_failure(&phases[i]);
        if (topo == NULL) /* the others complete it */
            break;
    }
    nw_topo_free(topo);
    return rc;
}

int nw_cmd_reader(int argc, char **argv)
{
    struct order order;
    struct nw_cli cli = {.rows = rows, .row_count = sizeof rows / sizeof *rows, .target = &order};
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);

    nw_child_settle(1);
    if (rc == NW_OK && order.parent != (int)getppid())
        rc = nw_fail(NW_EUSAGE, "\"reader\" is started by nodeworth check, not by people");
    if (rc == NW_OK)
        rc = read_all(&order);
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
