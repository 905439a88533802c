"""What no prediction may break, on random jobs: `nodeworth predict --batch` over presets, nets by numbers, experts, adapters, offload, every strategy and
framework, 1 to 16,384 GPUs, sequences to 1M, fp32 to fp8.

    NODEWORTH=build/nodeworth python3 -m unittest -q test_sanity        (SANITY_JOBS=3000 SANITY_SEED=7: more of them, others)
"""

import math
import os
import random
import sys
import unittest
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import run  # noqa: E402

JOBS, SEED = int(os.environ.get("SANITY_JOBS", "500")), int(os.environ.get("SANITY_SEED", "1"))
PROGRAM = os.environ.get("NODEWORTH")


def random_net(rng):
    """A preset in two of three jobs, else a net by its numbers."""
    if rng.random() < 2 / 3:
        return {"model": rng.choice(NAMES["models"])}
    size, heads = rng.choice([64, 80, 128, 256]), rng.choice([1, 2, 8, 12, 32, 40, 64, 128])
    net = {"layers": rng.choice([1, 2, 8, 12, 32, 80, 128]), "heads": heads, "hidden": size * heads, "head-size": size, "ffn": rng.choice([2, 3, 4]) * size * heads,
           "kv-heads": rng.choice([n for n in (1, 2, 8, 32, 128) if heads % n == 0]), "vocab": rng.choice([2, 32000, 250880]), "gated": rng.choice(["yes", "no"]), "tied": rng.choice(["yes", "no"])}
    if rng.random() < 0.3:
        net.update({"experts": rng.choice([2, 8, 64, 256]), "experts-per-token": rng.choice([1, 2])})
    return net


def random_spread(rng):
    gpus = 2 ** rng.randint(0, 14) if rng.random() < 0.85 else rng.choice([3, 12, 48, 1536, 12288])
    per = min(gpus, rng.choice([1, 2, 4, 8, 8, 8, 16]))
    per = per if gpus % per == 0 else 1
    spread = {"ranks": gpus, "nodes": str(gpus // per), "gpus-per-node": per, "nic-gbps": rng.choice([1, 25, 100, 400, 1600, 3200]), "nic-count": rng.choice([1, 4, 8])}
    left = gpus
    for name, most in (("tp", rng.choice([1, 2, 8])), ("pp", rng.choice([1, 1, 8, 32])), ("cp", rng.choice([1, 1, 4]))):
        degree = rng.choice([n for n in (1, 2, 4, 8, 16, 32) if n <= most and left % n == 0])
        left //= degree
        if degree > 1:
            spread[name] = degree
    if rng.random() < 0.2:
        spread["ep"] = rng.choice([2, 8, 64])
    micro = rng.choice([1, 1, 1, 2, 3, 8, 64])
    spread.update({"micro-batch": micro, "global-batch": micro * left * rng.choice([1, 1, 2, 8, 64])})
    return spread


def random_job(rng):
    job = {**random_net(rng), **random_spread(rng), "gpu": rng.choice(NAMES["gpus"]), "seq": rng.choice([1, 7, 128, 512, 1024, 2048, 4096, 8192, 32768, 1048576]),
           "framework": rng.choice(NAMES["frameworks"]), "strategy": rng.choice(NAMES["strategies"]), "optimizer": rng.choice(NAMES["optimizers"]),
           "precision": rng.choice(NAMES["precisions"]), "recompute": rng.choice(["none", "selective", "full"]), "attention": rng.choice(["flash", "flash", "materialized"])}
    if rng.random() < 0.25:
        job.update({"lora-rank": rng.choice([8, 16, 64, 256]), "lora-targets": rng.choice(["q,v", "q,k,v,o", "q,k,v,o,gate,up,down"]), "base": rng.choice(["same", "nf4", "int8"])})
    for option, values, share in (("offload-optimizer", ["cpu", "nvme"], 0.15), ("offload-params", ["cpu", "nvme"], 0.1), ("offload-activations", ["cpu"], 0.05), ("loss", ["chunked"], 0.1),
                                  ("reduce", ["same", "fp32", "bf16"], 0.1), ("gradients", ["same", "fp32"], 0.1), ("sequence-parallel", ["yes"], 0.1)):
        if rng.random() < share:
            job[option] = rng.choice(values)
    return job


def numbers(value, path=""):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from numbers(inner, f"{path}.{name}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def wide(job):
    """So much work in a layer that the CPU is not what it waits for."""
    return job.get("hidden", 0) >= 4096 and job["seq"] * job["micro-batch"] >= 4096 * job.get("cp", 1)


def without(job, *names):
    return {name: value for name, value in job.items() if name not in names}


# name, which jobs, the job that is never the faster one, the one that is never the slower one, tolerance (what finishes earlier may meet a busier wire)
LAWS = [
    ("twice the wire", lambda j: True, lambda j: j, lambda j: {**j, "nic-gbps": 2 * j["nic-gbps"]}, 1e-3),
    ("more memory bandwidth", lambda j: True, lambda j: {**j, "hbm": 1000}, lambda j: {**j, "hbm": 2500}, 0.02),
    ("faster products", lambda j: True, lambda j: {**j, "gemm-tflops": 100}, lambda j: {**j, "gemm-tflops": 200}, 0.02),
    ("faster host link", lambda j: True, lambda j: {**j, "host-gbps": 12}, lambda j: {**j, "host-gbps": 48}, 1e-6),
    ("half the batch", lambda j: True, lambda j: {**j, "global-batch": 2 * j["global-batch"]}, lambda j: j, 1e-4),
    ("nothing recomputed", lambda j: j["recompute"] != "none" and "offload-activations" not in j, lambda j: j, lambda j: {**j, "recompute": "none"}, 5e-3),
    ("tf32 for fp32", lambda j: j["precision"] == "tf32", lambda j: {**j, "precision": "fp32"}, lambda j: j, 1e-4),
    ("adapters for everything", lambda j: wide(j) and j.get("base") == "same", lambda j: without(j, "lora-rank", "lora-targets", "base"), lambda j: j, 0.02),
    ("fp8 but for its casts", lambda j: j["precision"] == "bf16" and j["gpu"].startswith(("H100", "H200", "B200", "B300")), lambda j: j, lambda j: {**j, "precision": "fp8"}, 0.1),
    ("nothing offloaded", lambda j: "offload-params" in j, lambda j: j, lambda j: without(j, "offload-params"), 1e-4),
]


@unittest.skipUnless(PROGRAM, "NODEWORTH names no program")
class Sanity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = run.Program(os.path.abspath(PROGRAM))
        for kind in ("models", "gpus", "frameworks", "strategies", "optimizers", "precisions"):
            NAMES[kind] = [item["name"] for item in cls.program.list(kind)]
        rng = random.Random(SEED)
        cls.jobs = [{**random_job(rng), "id": n} for n in range(JOBS)]
        answers = cls.program.predict(cls.jobs)
        cls.good = [(job, answer) for job, answer in zip(cls.jobs, answers) if "error" not in answer]

    def test_most_jobs_that_can_be_laid_out_are_answered(self):
        self.assertEqual(self.program.died, 0)
        self.assertGreater(len(self.good), JOBS / 5)

    def test_every_number_is_one(self):
        for job, answer in self.good:
            for path, value in numbers({name: part for name, part in answer.items() if name not in ("id", "assumed")}):
                self.assertTrue(math.isfinite(value) and value >= 0, f"{path} = {value} of {job}")

    def test_bounds_and_parts(self):
        for job, a in self.good:
            step, memory = a["step_ns"], a["memory"]
            self.assertLessEqual(a["step_low_ns"], step, job)
            self.assertLessEqual(step, a["step_high_ns"], job)
            self.assertLessEqual(a["step_full_overlap_ns"], step * (1 + 1e-9), job)
            self.assertLessEqual(step, a["step_no_overlap_ns"] * (1 + 1e-9), job)
            self.assertAlmostEqual(sum(a["breakdown"].values()) / step, 1, 3, job)
            self.assertLessEqual(a.get("mfu") or 0, 1, job)
            total = memory["allocated_bytes"] + memory["runtime_bytes"] + memory["fragmentation_bytes"]
            self.assertAlmostEqual(total / memory["total_bytes"], 1, 4, job)
            self.assertAlmostEqual(a["exposed_communication_ns"] + a["hidden_communication_ns"], a["communication_ns"], delta=1e-3 * a["communication_ns"] + 1)

    def test_what_helps_never_costs(self):
        pairs = [(law, slow(job), fast(job)) for job, _ in self.good for law in LAWS if law[1](job) for slow, fast in [law[2:4]]]
        asked = [{**job, "id": n} for n, job in enumerate(job for _, slow, fast in pairs for job in (slow, fast))]
        answers = self.program.predict(asked)
        seen, moved = Counter(), Counter()
        for n, (law, slow, _) in enumerate(pairs):
            a, b = answers[2 * n], answers[2 * n + 1]
            if "error" not in a and "error" not in b:
                seen[law[0]] += 1
                moved[law[0]] += a["step_ns"] != b["step_ns"]
                self.assertLessEqual(b["step_ns"], a["step_ns"] * (1 + law[4]), f"{law[0]}: {slow}")
        self.assertGreaterEqual(len(seen), len(LAWS) - 2)
        for law, count in seen.items():  # a law that is never put to the test holds always
            if count >= 20:
                self.assertGreater(moved[law], count / 10, law)

    def test_more_replicas_do_not_make_a_gpu_work_more(self):
        asked = [{**job, "ranks": 2 * job["ranks"], "nodes": str(2 * int(job["nodes"]))} for job, _ in self.good]
        compared = 0
        for (job, before), after in zip(self.good, self.program.predict(asked)):
            if "error" not in after and job.get("pp", 1) == 1:  # of one stage
                compared += 1
                self.assertLessEqual(after["compute_ns"], before["compute_ns"] * 1.005, job)
        self.assertGreater(compared, JOBS / 10)


NAMES = {}

if __name__ == "__main__":
    unittest.main()
