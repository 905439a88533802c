"""Other predictors on the same rows. Formulas as their documentation and sources state them, in code of our own; Calculon's figures are what the
tool itself answered (peer_calculon.py, published/peer_calculon.csv).

    items = calculon(results)                # [(result, their error)]
    llm_analysis(result, accepted), deepspeed_bytes(result), megatron_bytes(result)
"""

import csv
import math
import os

import memory as memory_truth
from stats import Summary, median, percent, weights_of

HERE = os.path.dirname(os.path.abspath(__file__))


def calculon():
    """{id: seconds a step}"""
    path = os.path.join(HERE, "published", "peer_calculon.csv")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {row["id"]: float(row["step_s"]) for row in csv.DictReader(file)}


def llm_analysis(result, accepted, efficiency=1.0):
    """Seconds a step by llm-analysis: FLOPs over the peak times an efficiency that the user chooses (its default: 1), backward = 2 × forward, per layer
    the tensor-parallel all-reduces added, the gather of ZeRO-3 hidden behind computation; data- and pipeline-parallel messages and bubbles left out."""
    job, q = result.job, result.job.request
    peak = accepted.peak(job.gpu, q["precision"])
    if not peak or not job.shape.transformer or "lora-rank" in q:
        return math.nan
    tp, pp, cp = q.get("tp", 1), q.get("pp", 1), q.get("cp", 1)
    dp = q["ranks"] // (tp * pp * cp)
    tokens = q["micro-batch"] * q["seq"] / cp
    layers, head = job.shape.forward_flops(q["seq"])
    passes = 4 if q["recompute"] == "full" else 3
    compute = tokens * (passes * layers + 3 * head) / (tp * pp) / (peak * efficiency)
    row = accepted.catalogue.get(job.gpu, {})
    link = float(row.get("nvlink_gbps_bidir_total") or 0) / 2 * 1e9 or 25e9
    reduced = 2 * tokens * job.shape.hidden * 2 * (tp - 1) / tp / link  # bytes of a 16-bit all-reduce on a ring
    tensor = (passes + 1 if passes == 4 else 4) * job.shape.layers / pp * reduced if tp > 1 else 0
    if q["strategy"] in ("zero3", "fsdp", "hsdp"):
        per_gpu = link if int(q["nodes"]) == 1 else q["nic-gbps"] / 8 * 1e9 / q["gpus-per-node"]
        compute = max(compute, 2 * 2 * job.shape.parameters() / tp / per_gpu)
    return q["global-batch"] / dp / q["micro-batch"] * (compute + tensor)


def deepspeed_bytes(result):
    """GPU memory of DeepSpeed's estimators (states only): ZeRO-2 2P + 18P/N, ZeRO-3 4 × largest layer + 18P/N; with offload less."""
    job, q = result.job, result.job.request
    if q["strategy"] not in ("zero2", "zero3", "fsdp") or "lora-rank" in q or q.get("tp", 1) * q.get("pp", 1) * q.get("cp", 1) > 1:
        return math.nan
    parameters, ranks = job.shape.parameters(), q["ranks"]
    largest = max(job.shape.vocab * job.shape.hidden, job.shape.layer_weights())
    offloaded = q.get("offload-optimizer", "none") != "none"
    if q["strategy"] == "zero2":
        return 2 * parameters if offloaded else 2 * parameters + 18 * parameters / ranks
    if q.get("offload-params", "none") != "none":
        return 4 * largest
    return 4 * largest + (2 if offloaded else 18) * parameters / ranks


def megatron_bytes(result):
    """Megatron-LM's theoretical_memory_usage: 18 bytes a parameter, or 6 + 12/d with the distributed optimizer; activations of a layer
    s·b·h·(18 + 4f/h)/t with sequence parallelism and selective recomputation, else s·b·h·(10 + 24/t) × 1.05; embedding and output layer.
    It has no full recomputation."""
    job, q = result.job, result.job.request
    if "megatron" not in job.profile and job.profile != "nemo" or "lora-rank" in q or not job.shape.transformer or q["recompute"] == "full":
        return math.nan
    tp, pp, shape = q.get("tp", 1), q.get("pp", 1), job.shape
    dp = q["ranks"] // (tp * pp * q.get("cp", 1))
    per_parameter = 6 + 12 / dp if q["strategy"] in ("zero1", "distopt") else 18
    embedding = shape.vocab * shape.hidden
    on_first = (shape.layers / pp * shape.layer_weights() + embedding + (0 if pp > 1 or shape.tied else embedding)) / tp
    unit = q["seq"] / q.get("cp", 1) * q["micro-batch"] * shape.hidden
    if q.get("sequence-parallel") == "yes":
        layer = unit * (18 + 4 * shape.ffn / shape.hidden) / tp
    else:
        layer = unit * (10 + 24 / tp) * 1.05
    activations = layer * shape.layers + 8 * q["seq"] * q["micro-batch"] * pp + unit * pp
    virtual = q.get("virtual-stages", 1)
    if virtual > 1:
        activations *= 1 + (pp - 1) / (pp * virtual)
    if pp == 1:
        activations += unit * 4 * (1 + shape.vocab / shape.hidden) / tp
    return per_parameter * on_first + activations


def line(title, items):
    """Of the table: items = [(result, their error, our error held out, our error as shipped)]"""
    weights = weights_of([item[0].job.key for item in items])
    theirs, held, shipped = (Summary([item[n] for item in items], weights) for n in (1, 2, 3))
    return [title, str(len(items))] + [f"{percent(s.median)} / {percent(s.mean)}" for s in (theirs, held, shipped)] \
        + [f"{percent(theirs.within, 0)} / {percent(held.within, 0)} / {percent(shipped.within, 0)}"]


def table(page, specs, shipped, memory, accepted):
    """One table; `specs`, `shipped`, `memory`: [(result, our error, …)]."""
    lines = []
    answers = calculon()
    plain = {r.job.row["id"]: error for r, error, _ in shipped}
    ours = [(r, error, plain.get(r.job.row["id"], error)) for r, error, _ in specs]
    items = [(r, answers[r.job.row["id"]] / r.job.measured_s - 1, held, now) for r, held, now in ours if r.job.row["id"] in answers]
    lines.append(line("Calculon, its own 8 validation rows", [i for i in items if i[0].job.source.startswith("Korthikanti")]))
    lines.append(line("Calculon, all rows that it can describe", items))
    raw = [(r, llm_analysis(r, accepted), held, now) for r, held, now in ours]
    raw = [(r, t / r.job.measured_s - 1, held, now) for r, t, held, now in raw if t == t]
    lines.append(line("llm-analysis, efficiency 1 (its default)", raw))
    best = {f: median([1 + i[1] for i in raw if i[0].job.family != f]) for f in {i[0].job.family for i in raw}}
    lines.append(line("llm-analysis, one efficiency, held out", [(r, (1 + e) / best[r.job.family] - 1, held, now) for r, e, held, now in raw if best[r.job.family] > 0]))
    for title, formula in (("DeepSpeed's memory estimators", deepspeed_bytes), ("Megatron-LM's theoretical memory", megatron_bytes),
                           ("accelerate estimate-memory", memory_truth.accelerate_bytes), ("EleutherAI cookbook", memory_truth.eleuther_bytes)):
        found = [(r, formula(r), error) for r, error, _ in memory]
        lines.append(line(title, [(r, b / 2**30 / r.job.memory_gib - 1, error, error) for r, b, error in found if b == b]))
    page.title("Other predictors on the same rows")
    page.say("Median / mean error, and the share within 10 % (theirs / ours held out / ours as shipped). Ours: from specifications only; memory has nothing that is fitted again. "
             "Calculon's efficiencies were chosen with its 8 rows in view: there its figure compares with ours as shipped.")
    page.say()
    page.table(["peer", "rows", "theirs", "ours, held out", "ours, as shipped", "within 10 %"], [item for item in lines if item[1] != "0"])
