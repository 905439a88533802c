#!/usr/bin/env python3
"""rank.py JOB STRATEGY: one rank of a real training step on the CPU over gloo, or of several that do not talk (STRATEGY alone).

Started by mpirun on nodes made of network namespaces. Rank 0 prints one JSON line: the step's median, slowest rank, and what was run.
"""

import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

import jobs

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
RANKS = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1")) if sys.argv[2:3] != ["alone"] else 1
WARMUP = 2


def wrap(model, strategy):
    """The model as the strategy has it, its optimizer, and how one step is made."""
    if strategy == "alone":
        return model, torch.optim.Adam(model.parameters(), lr=1e-4)
    if strategy == "ddp":
        wrapped = nn.parallel.DistributedDataParallel(model)
        return wrapped, torch.optim.Adam(wrapped.parameters(), lr=1e-4)
    if strategy == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        wrapped = nn.parallel.DistributedDataParallel(model)
        return wrapped, ZeroRedundancyOptimizer(wrapped.parameters(), optimizer_class=torch.optim.Adam, lr=1e-4)
    if strategy == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (RANKS,))
        for unit in model.units():
            fully_shard(unit, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model, torch.optim.Adam(model.parameters(), lr=1e-4)
    sys.exit(f"rank.py: no strategy {strategy}")


def steps(job, strategy, count):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model, inputs, targets = jobs.make(job, RANK)
    model, optimizer = wrap(model, strategy)
    times = []
    for step in range(WARMUP + count):
        if RANKS > 1:
            dist.barrier()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
        loss.backward()
        optimizer.step()
        elapsed = torch.tensor([time.perf_counter() - start])
        if RANKS > 1:
            dist.all_reduce(elapsed, op=dist.ReduceOp.MAX)
        if step >= WARMUP:
            times.append(float(elapsed))
    return times


def main():
    job, strategy = sys.argv[1], sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    if RANKS > 1:
        dist.init_process_group("gloo", init_method=f"tcp://{os.environ['MASTER']}:29511", rank=RANK, world_size=RANKS)
    times = steps(job, strategy, count)
    if RANK == 0:
        print(json.dumps({"job": job, "strategy": strategy, "ranks": RANKS, "torch": torch.__version__,
                          "step_s": statistics.median(times), "min_s": min(times), "max_s": max(times), "steps": len(times)}))
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
