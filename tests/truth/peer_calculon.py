"""What Calculon (github.com/calculon-ai/calculon) predicts for the rows that it can describe: writes published/peer_calculon.csv.

    PYTHONPATH=tests/truth:CALCULON python3 tests/truth/peer_calculon.py CALCULON > tests/truth/published/peer_calculon.csv

CALCULON: a clone of it, with numpy and pandas. Not run by any test: the CSV is kept, ci/validate compares. Its own system files for A100 80 GB
and H100 as they are; gated MLPs, key-value groups other than one per head or one, encoders and vocabularies are not in it.
"""

import csv
import logging
import os
import sys

import report
import rows as rows_of
from run import Program
from shapes import Unknown

SYSTEMS = {"A100 SXM4 80GB": "a100_80g.json", "H100 SXM5 80GB": "h100_80g_nvl8.json"}


def networks(tp, pp, dp, gpus, per_node):
    """Tier of each group: 0 inside a node, 1 between; a group that starts inside has to fill it."""
    if gpus <= per_node:
        return 0, 0, 0
    return 0 if tp > 1 else 1, 1, 1


def execution(job):
    q = job.request
    tp, pp = q.get("tp", 1), q.get("pp", 1)
    dp = q["ranks"] // (tp * pp)
    tier = networks(tp, pp, dp, q["ranks"], q["gpus-per-node"])
    recompute = {"none": "none", "selective": "attn_only", "full": "full"}[q["recompute"]]
    sequence = tp > 1 and q.get("sequence-parallel") == "yes"
    overlapped = dp > 1 and job.profile in ("megatron", "nemo")
    return {"num_procs": q["ranks"], "tensor_par": tp, "pipeline_par": pp, "data_par": dp, "tensor_par_net": tier[0], "pipeline_par_net": tier[1],
            "data_par_net": tier[2], "batch_size": q["global-batch"], "microbatch_size": q["micro-batch"], "datatype": "float8" if q["precision"] == "fp8" else "float16",
            "fused_activation": False, "attention_type": "multiquery" if job.shape.kv_heads == 1 else "multihead", "activation_recompute": recompute,
            "pipeline_interleaving": q.get("virtual-stages", 1) if pp > 1 else 1, "optimizer_sharding": dp > 1 and q["strategy"] in ("zero1", "distopt"),
            "tensor_par_comm_type": "rs_ag" if sequence else "ar", "tensor_par_overlap": "none", "seq_par_ag_redo": sequence and recompute == "attn_only",
            "data_par_overlap": overlapped, "weight_offload": False, "activations_offload": False, "optimizer_offload": False, "training": True}


def describes(job):
    q, shape = job.request, job.shape
    return (shape.transformer and not shape.gated and not shape.encoder and not shape.experts and shape.kv_heads in (1, shape.heads) and job.gpu in SYSTEMS
            and q.get("cp", 1) == 1 and "lora-rank" not in q and q["precision"] in ("fp16", "bf16", "fp8") and "megatron" in job.profile + job.row["framework"].lower())


def main():
    base = sys.argv[1]
    sys.path.insert(0, base)
    import calculon as peer  # the clone's package: sys.path[0]
    from calculon.llm import Llm
    from calculon.system import System
    program = Program()
    accepted = program.accepted()
    table = report.unique(rows_of.load([report.default_file("published_steps.csv")]))
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["id", "step_s"])
    log = logging.getLogger()
    for row in table:
        try:
            job = rows_of.read(row, accepted)
        except Unknown:
            continue
        if job.metric == "peak_mem_gib" or not describes(job):
            continue
        shape = job.shape
        net = {"hidden": shape.hidden, "feedforward": shape.ffn, "seq_size": job.request["seq"], "attn_heads": shape.heads, "attn_size": shape.head_size, "num_blocks": shape.layers}
        try:
            system = System(peer.io.read_json_file(os.path.join(base, "systems", SYSTEMS[job.gpu])))
            model = Llm(Llm.Application(net), log)
            model.compile(system, Llm.Execution.from_json(execution(job)))
            model.run(system)
            out.writerow([row["id"], f"{model.get_total_time():.6g}"])
        except Exception as error:  # its asserts and its own Llm.Error: it cannot do this one
            print(row["id"], type(error).__name__, str(error)[:100], file=sys.stderr)


if __name__ == "__main__":
    main()
