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
        "#!/bin/bash\n"
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
            "#!/bin/bash\n"
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

/* One replica type of a job: `indent` blanks before its name. */
static void write_replica(FILE *stream, const char *name, int count, const char *container,
                          const char *image, const char *command, int gpus)
{
    fprintf(stream,
            "    %s:\n"
            "      replicas: %d\n"
            "      template:\n"
            "        spec:\n"
            "          containers:\n"
            "            - name: %s\n"
            "              image: \"%s\"\n"
            "              command: [%s]\n",
            name, count, container, image, command);
    if (gpus > 0)
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
                gpus);
}

nw_rc nw_emit_mpijob(const struct nw_emission *emission, FILE *stream)
{
    char command[256];

    snprintf(command, sizeof command, "mpirun, -np, \"%d\", -N, \"%d\", python3, \"%s\"",
             emission->step->rank_count, emission->gpus_per_node, emission->script);
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
    write_replica(stream, "Launcher", 1, "launcher", emission->image, command, 0);
    write_replica(stream, "Worker", nodes_of(emission), "worker", emission->image,
                  "/usr/sbin/sshd, -De", emission->gpus_per_node);
    return NW_OK;
}

/* The operator sets MASTER_ADDR, PET_NNODES and the like, which torchrun reads. */
nw_rc nw_emit_pytorchjob(const struct nw_emission *emission, FILE *stream)
{
    char command[256];

    snprintf(command, sizeof command, "torchrun, \"%s\"", emission->script);
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
    write_replica(stream, "Master", 1, "pytorch", emission->image, command,
                  emission->gpus_per_node);
    if (nodes_of(emission) > 1)
        write_replica(stream, "Worker", nodes_of(emission) - 1, "pytorch", emission->image, command,
                      emission->gpus_per_node);
    return NW_OK;
}
