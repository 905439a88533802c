"""Memory: what further predictors say of the same rows, and the two constants without each source.

    accelerate_bytes(result), eleuther_bytes(result)     # NAN: it says nothing of such a row
    held_out(page, memory)                               # memory: [(result, our error, …)]; the same with errors held out
"""

import math

from stats import Summary, median, percent, weights_of

GIB = 2.0**30
BASE = [n / 4 * GIB for n in range(2, 15)]  # CUDA context and libraries
SHARE = [n / 100 for n in range(0, 15)]  # what the allocator holds beside what is in use


def accelerate_bytes(result):
    """accelerate estimate-memory, "training using Adam": four times the weights in the type that was asked for, on one GPU;
    no sharding, no activations."""
    job, q = result.job, result.job.request
    if not job.shape.transformer or "lora-rank" in q:
        return math.nan
    return 4 * job.shape.parameters() * (4 if q["precision"] in ("fp32", "tf32") else 2)


def eleuther_bytes(result):
    """EleutherAI cookbook, calc_transformer_mem.py: weights 2, gradients 4, states 12 bytes over TP x PP, the parts of a ZeRO stage
    over all GPUs; a gather bucket of 5e8 elements, 1e9 live ones with ZeRO-3; activations s·b·h·L·(34 + 5as/h), with checkpointing 34."""
    job, q = result.job, result.job.request
    if not job.shape.transformer or "lora-rank" in q:
        return math.nan
    shape, ranks = job.shape, q["ranks"]
    stage = {"zero1": 1, "distopt": 1, "zero2": 2, "fsdp-keep": 2, "zero3": 3, "fsdp": 3, "hsdp": 3, "zeropp": 3}.get(q["strategy"], 0)
    mine = shape.parameters() / (q.get("tp", 1) * q.get("pp", 1))
    states = mine * 2 / (ranks if stage == 3 else 1)
    states += shape.parameters() * 4 / (ranks if stage >= 2 else 1) / (q.get("tp", 1) * q.get("pp", 1))
    states += shape.parameters() * 12 / (ranks if stage >= 1 else 1) / (q.get("tp", 1) * q.get("pp", 1))
    if ranks > 1 and stage >= 1:
        states += 5e8 * 2 + (1e9 * 2 if stage == 3 else 0)
    unit = q["seq"] * q["micro-batch"] * shape.hidden * shape.layers
    core = 0 if q["recompute"] != "none" else 5 * shape.heads * q["seq"] / shape.hidden
    return states + unit * (34 + core)


# ---- the two constants ----------------------------------------------------------------------------

def predicted(result, base, share):
    """GiB with other constants, from the parts of the answer."""
    parts = result.answer["memory"]
    allocated = parts["allocated_bytes"]
    if result.job.memory_kind == "allocated":
        return allocated / GIB
    held = allocated * (1 + share) if parts["fragmentation_bytes"] > 0 else allocated
    if result.job.memory_kind == "reserved":
        return held / GIB
    shipped = result.answer["assumed"]["RUNTIME_BYTES"]
    return (held + parts["runtime_bytes"] - shipped + base) / GIB


def error(result, constants):
    return predicted(result, *constants) / result.job.memory_gib - 1


def best(results):
    """The constants with the least median error, each family of sources weighing alike."""
    families = {}
    for result in results:
        families.setdefault(result.job.family, []).append(result)

    def loss(constants):
        return sum(median([abs(error(r, constants)) for r in members]) for members in families.values())
    return min(((base, share) for base in BASE for share in SHARE), key=loss)


def held_out(page, memory):
    """Constants refitted without each family of sources, and the family's error with them: [(result, error, None)]."""
    results = [item[0] for item in memory]
    lines, errors = [], []
    for family in sorted({r.job.family for r in results}):
        inside = [r for r in results if r.job.family == family]
        without = [r for r in results if r.job.family != family]
        constants = best(without) if without else best(inside)
        errors += [(r, error(r, constants), None) for r in inside]
        summary = Summary([error(r, constants) for r in inside], weights_of([r.job.key for r in inside]))
        lines.append([family, str(len(inside)), f"{constants[0] / GIB:.2f} GiB", f"{constants[1]:.2f}", percent(summary.median), percent(summary.p90),
                      percent(summary.within, 0)])
    page.title("Memory: the two constants refitted without each source")
    page.table(["held out", "rows", "runtime", "allocator", "median", "p90", "within 10 %"], lines)
    return errors
