/* How the job is started: torchrun by hand, under Slurm, under Kubernetes. */
#include "model/emit.h"

static int nodes_of(const struct nw_emission *emission)
{
    return emission->step->node_count;
}

nw_rc nw_emit_torchrun(const struct nw_emission *emission, FILE *stream)
{
    fprintf(
        stream,
        "# On every node: HEAD=name-of-the-first-node ./torchrun.sh [arguments of the script]\n"
        "set -euo pipefail\n"
        "exec torchrun --nnodes %d --nproc-per-node %d --rdzv-backend c10d \\\n"
        "    --rdzv-id \"${RUN_ID:-nodeworth}\" --rdzv-endpoint \"${HEAD:?the first node}:29500\" "
        "\\\n"
        "    %s \"$@\"\n",
        nodes_of(emission), emission->gpus_per_node, emission->script);
    return NW_OK;
}

nw_rc nw_emit_slurm(const struct nw_emission *emission, FILE *stream)
{
    fprintf(stream,
            "#SBATCH --job-name=train\n"
            "#SBATCH --nodes=%d\n"
            "#SBATCH --ntasks-per-node=1\n"
            "#SBATCH --gpus-per-node=%d\n"
            "#SBATCH --exclusive\n"
            "#SBATCH --output=%%x-%%j.out\n"
            "set -euo pipefail\n"
            "head=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
            "srun torchrun --nnodes \"$SLURM_JOB_NUM_NODES\" --nproc-per-node %d "
            "--rdzv-backend c10d \\\n"
            "    --rdzv-id \"$SLURM_JOB_ID\" --rdzv-endpoint \"$head:29500\" %s \"$@\"\n",
            nodes_of(emission), emission->gpus_per_node, emission->gpus_per_node, emission->script);
    return NW_OK;
}

struct replica { /* of a Kubernetes job */
    const char *name, *container;
    int count, gpus;
    const char *command[8]; /* ends with NULL */
};

/* A text of YAML in double quotes. */
static void write_text(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}

static void write_replica(FILE *stream, const struct replica *replica, const char *image)
{
    fprintf(stream,
            "    %s:\n"
            "      replicas: %d\n"
            "      template:\n"
            "        spec:\n"
            "          containers:\n"
            "            - name: %s\n"
            "              image: ",
            replica->name, replica->count, replica->container);
    write_text(stream, image);
    fprintf(stream, "\n              command: [");
    for (size_t i = 0; replica->command[i] != NULL; i++) {
        fputs(i > 0 ? ", " : "", stream);
        write_text(stream, replica->command[i]);
    }
    fprintf(stream, "]\n");
    if (replica->gpus > 0)
        fprintf(stream,
                "              resources:\n"
                "                limits:\n"
                "                  nvidia.com/gpu: %d\n"
                "              volumeMounts:\n"
                "                - name: shm\n"
                "                  mountPath: /dev/shm\n"
                "          volumes:\n"
                "            - name: shm\n"
                "              emptyDir: {medium: Memory}\n",
                replica->gpus);
}

nw_rc nw_emit_mpijob(const struct nw_emission *emission, FILE *stream)
{
    char ranks[16], per_node[16];
    const struct replica launcher = {
        .name = "Launcher",
        .container = "launcher",
        .count = 1,
        .command = {"mpirun", "-np", ranks, "-N", per_node, "python3", emission->script}};
    const struct replica worker = {.name = "Worker",
                                   .container = "worker",
                                   .count = nodes_of(emission),
                                   .gpus = emission->gpus_per_node,
                                   .command = {"/usr/sbin/sshd", "-De"}};

    snprintf(ranks, sizeof ranks, "%d", emission->step->rank_count);
    snprintf(per_node, sizeof per_node, "%d", emission->gpus_per_node);
    fprintf(stream,
            "apiVersion: kubeflow.org/v2beta1\n"
            "kind: MPIJob\n"
            "metadata:\n"
            "  name: train\n"
            "spec:\n"
            "  slotsPerWorker: %d\n"
            "  runPolicy:\n"
            "    cleanPodPolicy: Running\n"
            "  mpiReplicaSpecs:\n",
            emission->gpus_per_node);
    write_replica(stream, &launcher, emission->image);
    write_replica(stream, &worker, emission->image);
    return NW_OK;
}

/* The operator sets MASTER_ADDR, PET_NNODES and the like, which torchrun reads. */
nw_rc nw_emit_pytorchjob(const struct nw_emission *emission, FILE *stream)
{
    struct replica replica = {.name = "Master",
                              .container = "pytorch",
                              .count = 1,
                              .gpus = emission->gpus_per_node,
                              .command = {"torchrun", emission->script}};

    fprintf(stream,
            "apiVersion: kubeflow.org/v1\n"
            "kind: PyTorchJob\n"
            "metadata:\n"
            "  name: train\n"
            "spec:\n"
            "  nprocPerNode: \"%d\"\n"
            "  runPolicy:\n"
            "    cleanPodPolicy: None\n"
            "  pytorchReplicaSpecs:\n",
            emission->gpus_per_node);
    write_replica(stream, &replica, emission->image);
    replica.name = "Worker";
    replica.count = nodes_of(emission) - 1;
    if (replica.count > 0)
        write_replica(stream, &replica, emission->image);
    return NW_OK;
}
