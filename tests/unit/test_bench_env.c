#include <criterion/criterion.h>
#include <string.h>

#include "bench/binding.h"
#include "bench/case.h"

Test(bench_env, variables_are_recorded_by_an_allow_list_without_secrets)
{
    static const struct {
        const char *name;
        bool recorded;
    } rows[] = {
        {"NCCL_ALGO", true},
        {"NCCL_IB_HCA", true},
        {"UCX_TLS", true},
        {"OMPI_MCA_btl", true},
        {"OMPI_MCA_btl_tcp_links", true},
        {"CUDA_VISIBLE_DEVICES", true},
        {"HOME", false},
        {"AWS_SECRET_ACCESS_KEY", false},
        {"NCCL_API_TOKEN", false},
        {"UCX_PASSWORD", false},
        {"NCCL_auth_file", false},
        {"OMPI_MCA_orte_precondition_transports", false}, /* mpirun's key */
        {"OMPI_MCA_ess_base_jobid", false},
        {"XNCCL_ALGO", false},
        {"", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(nw_env_is_recorded(rows[i].name), rows[i].recorded, "%s", rows[i].name);
}

static struct nw_rank_binding on_cores(uint64_t mask)
{
    struct nw_rank_binding binding = {.cores = {mask}};

    snprintf(binding.cpus, sizeof binding.cpus, "mask %llx", (unsigned long long)mask);
    return binding;
}

Test(bench_env, ranks_that_must_share_cores_are_said_once_a_host)
{
    static const struct {
        const char *name;
        uint64_t masks[4]; /* ranks 0, 1 on node1; 2, 3 on node2; 0: unknown */
        int findings;
    } rows[] = {
        {"a core each", {1, 2, 1, 2}, 0},
        {"unbound, enough cores", {15, 15, 15, 15}, 0},
        {"both on one core", {1, 1, 1, 2}, 1},
        {"both on one core, on both hosts", {1, 1, 4, 4}, 2},
        {"overlapping, enough cores", {3, 6, 3, 6}, 0},
        {"one bound into the other's only core", {1, 1, 3, 3}, 1},
        {"unknown", {0, 0, 0, 0}, 0},
    };
    static int host_of_rank[4] = {0, 0, 1, 1};
    static char host_names[2][64] = {"node1", "node2"};
    const struct nw_comm comm = {
        .rank_count = 4, .host_count = 2, .host_of_rank = host_of_rank, .host_names = host_names};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_rank_binding bindings[4];
        struct nw_findings findings = {0};

        for (int rank = 0; rank < 4; rank++)
            bindings[rank] = on_cores(rows[i].masks[rank]);
        cr_assert_eq(nw_binding_judge(bindings, &comm, &findings), NW_OK);
        cr_expect_eq(findings.count, rows[i].findings, "%s: %zu findings", rows[i].name,
                     findings.count);
        nw_findings_free(&findings);
    }
}

Test(bench_env, this_process_runs_somewhere_and_has_memory)
{
    struct nw_rank_binding binding;
    uint64_t any = 0;

    nw_binding_read(&binding);
    for (size_t i = 0; i < NW_BINDING_CPUS_MAX / 64; i++)
        any |= binding.cores[i];
    cr_expect_neq(any, 0);
    cr_expect(strspn(binding.cpus, "0123456789,-") == strlen(binding.cpus) &&
                  binding.cpus[0] != '\0',
              "\"%s\"", binding.cpus);
    cr_expect_gt(nw_env_available_bytes(), 1u << 20);
}
