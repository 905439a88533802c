/* What python3 and PyTorch say of themselves. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/json.h"
#include "topo/system.h"

#define MARK "nodeworth-torch "

/* The current folder is taken from the search path: a torch.py in it is not PyTorch. The alarm ends
 * it where nobody is left to kill it. device_count asks the driver and makes no context. */
static const char script[] =
    "import sys, json, signal\n"
    "signal.alarm(int(sys.argv[1]))\n"
    "sys.path[:] = [p for p in sys.path if p]\n"
    "r = {'python': sys.executable}\n"
    "try:\n"
    "    import torch\n"
    "    r['torch'] = str(torch.__version__)\n"
    "    r['cuda'] = torch.version.cuda or getattr(torch.version, 'hip', None)\n"
    "    try:\n"
    "        v = torch.cuda.nccl.version()\n"
    "        r['nccl'] = '.'.join(map(str, v)) if isinstance(v, tuple) else str(v)\n"
    "    except Exception:\n"
    "        pass\n"
    "    try:\n"
    "        r['gpus'] = torch.cuda.device_count()\n"
    "    except Exception as e:\n"
    "        r['error'] = 'device_count: ' + str(e)\n"
    "except ModuleNotFoundError as e:\n"
    "    if e.name == 'torch':\n"
    "        r['absent'] = True\n"
    "    else:\n"
    "        r['error'] = str(e)\n"
    "except BaseException as e:\n"
    "    r['error'] = type(e).__name__ + ': ' + str(e)\n"
    "print('\\n" MARK "' + json.dumps(r))\n";

/* The last marked line: what is imported may print as well. NULL: there is none. */
static json_t *find_answer(const char *output)
{
    const char *found = NULL;

    for (const char *at = strstr(output, MARK); at != NULL; at = strstr(at + 1, MARK))
        found = at;
    if (found == NULL)
        return NULL;
    found += strlen(MARK);
    return json_loadb(found, strcspn(found, "\n"), 0, NULL);
}

static nw_rc broken(struct nw_topo *topo, const char *python, const char *text)
{
    return nw_findings_add(
        &topo->findings, NW_FINDING_WARN, "pytorch-broken", topo->host,
        "run `python3 -c \"import torch\"` on this machine and mend what it says",
        "%s cannot use PyTorch: %.300s", python, text);
}

static nw_rc take_answer(struct nw_topo *topo, const json_t *answer)
{
    static const struct {
        const char *key;
        nw_fact_id id;
    } texts[] = {
        {"torch", NW_FACT_PYTORCH}, {"cuda", NW_FACT_PYTORCH_CUDA}, {"nccl", NW_FACT_PYTORCH_NCCL}};
    const char *python = json_string_value(json_object_get(answer, "python"));
    const char *error = json_string_value(json_object_get(answer, "error"));
    const json_t *gpus = json_object_get(answer, "gpus");
    const char *source = python != NULL && python[0] != '\0' ? python : "python3";

    if (json_is_true(json_object_get(answer, "absent")))
        return nw_topo_set_text(topo, 0, NW_FACT_PYTORCH, "absent", source);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        NW_TRY(nw_topo_set_text(topo, 0, texts[i].id,
                                json_string_value(json_object_get(answer, texts[i].key)), source));
    if (json_is_integer(gpus))
        NW_TRY(nw_topo_set_number(topo, 0, NW_FACT_PYTORCH_GPUS, (double)json_integer_value(gpus),
                                  source));
    return error != NULL ? broken(topo, source, error) : NW_OK;
}

/* The last line of what it wrote to stderr: python's own word for what happened. */
static const char *last_line(char *text)
{
    size_t length = strlen(text);
    const char *newline;

    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    newline = strrchr(text, '\n');
    return newline != NULL ? newline + 1 : text;
}

nw_rc nw_system_probe_python(struct nw_topo *topo, const char *program, double limit_s)
{
    char seconds[16], fate[96];
    const char *arguments[] = {program != NULL ? program : "python3", "-c", script, seconds, NULL};
    struct nw_command_result result;
    json_t *answer;
    nw_rc rc;

    snprintf(seconds, sizeof seconds, "%.0f", fmin(fmax(ceil(limit_s) + 1, 2), 3600));
    rc = nw_command_run(
        &(struct nw_command){.arguments = arguments, .limit_s = limit_s, .output_max = 64 << 10},
        &result);
    if (rc == NW_ENODEV) {
        nw_clear_error();
        return NW_OK;
    }
    if (rc == NW_ETIMEOUT || rc == NW_EIO) {
        rc = nw_topo_not_checked(topo, "PyTorch (%.200s)", nw_last_error()->text);
        nw_clear_error();
        return rc;
    }
    NW_TRY(rc);
    answer = find_answer(result.output);
    if (answer != NULL)
        rc = take_answer(topo, answer);
    else
        rc = broken(topo, arguments[0],
                    result.errors[0] != '\0' && result.exit_code >= 0
                        ? last_line(result.errors)
                        : nw_child_fate(fate, sizeof fate, result.status));
    json_decref(answer);
    nw_command_free(&result);
    return rc;
}
