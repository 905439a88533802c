"""The claims: ratio, anchored, specifications only, memory. All by families of sources held out (README.md).

    board = Board(jobs, unread, program)      # runs the batch
    board.specifications(), board.anchored(), board.ratio(pairs), board.memory()
"""

import math
from collections import defaultdict

from stats import Summary, additive_medians, median, weights_of


def gpu_class(gpu):
    for name in ("GB300", "GB200", "B300", "B200", "H200", "GH200", "H100", "H800", "H20", "A100", "A800", "V100", "L40S", "RTX", "A10G", "A10", "L4", "T4", "MI3", "Ascend"):
        if gpu.startswith(name):
            return name
    return gpu.split(" ")[0]


class Result:
    """A job with its answer."""

    def __init__(self, job, answer):
        self.job = job
        self.answer = answer
        self.error = answer.get("error") or ""
        self.predicted_s = (answer.get("step_ns") or 0) / 1e9
        if not self.error and not self.predicted_s > 0:
            self.error = "no step in the answer"
        low, high = answer.get("step_low_ns"), answer.get("step_high_ns")
        self.low, self.high = (low / 1e9, high / 1e9) if low and high else (math.nan, math.nan)

    @property
    def good(self):
        return not self.error

    @property
    def log_ratio(self):
        """Of predicted over measured."""
        return math.log(self.predicted_s / self.job.measured_s)

    def memory(self):
        parts = self.answer.get("memory") or {}
        total = parts.get("total_bytes")
        if not total:
            return math.nan
        if self.job.memory_kind == "allocated" and parts.get("allocated_bytes"):
            return parts["allocated_bytes"] / 2**30
        less = parts.get("runtime_bytes") or 0
        if self.job.memory_kind == "allocated":
            less += parts.get("fragmentation_bytes") or parts.get("margin_bytes") or 0
        if self.job.memory_kind == "all":
            less = 0
        return (total - less) / 2**30


class Board:
    def __init__(self, jobs, program, assume=None):
        self.jobs = jobs
        self.program = program
        self.results = self.run(assume)
        self.by_id = {}
        for result in self.results:
            self.by_id.setdefault(result.job.row["id"], result)

    def run(self, assume=None):
        answers = self.program.predict([job.request for job in self.jobs], assume)
        return [Result(job, answer) for job, answer in zip(self.jobs, answers)]

    # ---- absolute, from specifications only --------------------------------------------------------

    def steps(self, results=None):
        return [r for r in results or self.results if r.good and r.job.measured_s and not r.job.skip]

    def factors(self, results, shipped=None):
        """{family: function(result) → factor on the predicted step}, fitted without that family."""
        items = [(r.job.family, r.job.profile, gpu_class(r.job.gpu), -r.log_ratio, r) for r in results]
        shipped = shipped or {}
        found = {}
        for family in {item[0] for item in items}:
            profile, gpu = additive_medians([item[:4] for item in items if item[0] != family])

            def factor(result, profile=profile, gpu=gpu):
                name = result.job.profile
                neutral = -math.log(shipped.get(name, 1)) if name not in profile else 0
                return math.exp(profile.get(name, neutral) + gpu.get(gpu_class(result.job.gpu), 0))
            found[family] = factor
        return found

    def specifications(self, held_out=True, shipped=None):
        """[(result, error, covered)]"""
        results = self.steps()
        factors = self.factors(results, shipped) if held_out else {}
        out = []
        for r in results:
            f = factors[r.job.family](r) if held_out else 1
            covered = r.low * f <= r.job.measured_s <= r.high * f if r.low == r.low else None
            out.append((r, r.predicted_s * f / r.job.measured_s - 1, covered))
        return out

    # ---- absolute, anchored ------------------------------------------------------------------------

    def anchored(self, results=None, least_hidden=0):
        """[(result, error, error with the median of the others as the anchor)]"""
        groups = defaultdict(list)
        for r in self.steps(results):
            if (r.job.shape.hidden or 0) >= least_hidden:
                groups[r.job.source, r.job.gpu, r.job.row["precision"], r.job.row["framework"]].append(r)
        out = []
        for members in groups.values():
            # duplicates do not anchor each other: they are one configuration
            for r in members:
                others = [o.log_ratio for o in members if o is not r and o.job.key != r.job.key]
                if not others:
                    continue
                errors = sorted((math.exp(r.log_ratio - other) - 1 for other in others), key=abs)
                middle = errors[len(errors) // 2] if len(errors) % 2 else errors[len(errors) // 2 - 1]
                out.append((r, middle, math.exp(r.log_ratio - median(others)) - 1))
        return out

    # ---- ratio -------------------------------------------------------------------------------------

    def find_pairs(self, pairs):
        """[(pair, anchors, targets)], [(pair, why not)] by the columns that name the rows (the pairs' names may be cut short). Of several
        candidates the two that agree in most options and have the pair's measured ratio, else all that do agree, whose means have it."""
        index = defaultdict(list)
        for r in self.results:
            if r.job.measured_s:
                index[r.job.row["model"], r.job.row["gpus"]].append(r)

        def named(pair, count, names=("source", "gpu", "precision", "strategy")):
            found = [r for r in index[pair["model"], pair[count]] if all(r.job.row[name].startswith(pair[name]) for name in names)]
            return found or (named(pair, count, names[:-1]) if names[-1] == "strategy" else [])

        found, missing = [], []
        for pair in pairs:
            want = math.log(float(pair["measured_step_ratio"]))
            both = [(differences(a, t), abs(math.log(measured_ratio(a, t)) - want), a, t)
                    for a in named(pair, "gpus_anchor") for t in named(pair, "gpus_target")]
            exact = [item for item in both if item[1] <= 0.003]
            alike = [item for item in both if item[0] == min(both, key=lambda item: item[0])[0]]
            if not both:
                missing.append((pair, "its rows are not in the files, or not predictable"))
                continue
            if exact:
                _, _, a, t = min(exact, key=lambda item: item[:2])
                anchors, targets = [a], [t]
            else:
                anchors, targets = unique(item[2] for item in alike), unique(item[3] for item in alike)
                if abs(math.log(mean_time(targets) / mean_time(anchors)) - want) > 0.005:
                    missing.append((pair, "no two rows have the measured ratio"))
                    continue
            bad = [r.error for r in anchors + targets if not r.good]
            if bad:
                missing.append((pair, bad[0]))
            else:
                found.append((pair, anchors, targets))
        return found, missing


def unique(items):
    return list({id(item): item for item in items}.values())


def mean_time(results, predicted=None):
    """Of a unit of work."""
    return sum((predicted[id(r)] if predicted else r.job.measured_s) / work(r) for r in results) / len(results)


def work(result):
    """Tokens (or samples) of a step and GPU."""
    request = result.job.request
    return request["global-batch"] * (request.get("seq") or 1) / request["ranks"]


def measured_ratio(anchor, target):
    return (target.job.measured_s / work(target)) / (anchor.job.measured_s / work(anchor))


def predicted_ratio(anchors, targets, predicted=None):
    """Per unit of work; `predicted`: steps of other constants, by id of the result."""
    predicted = predicted or {id(r): r.predicted_s for r in anchors + targets}
    return mean_time(targets, predicted) / mean_time(anchors, predicted)


def differences(a, t):
    """How many options other than what more GPUs change the two rows differ in."""
    free = {"id", "ranks", "nodes", "gpus-per-node", "global-batch", "nic-gbps", "nic-count", "shard"}
    names = (set(a.job.request) | set(t.job.request)) - free
    notes = re_version(a.job.row["notes"]) != re_version(t.job.row["notes"])
    return sum(a.job.request.get(name) != t.job.request.get(name) for name in names) + notes


def re_version(notes):
    return notes.split(";")[0][:60]


def is_hard(pair):
    return float(pair["measured_step_ratio"]) >= 1.15 or float(pair["dp_comm_over_anchor_step"] or 0) > 0.15


def summary(items, keys=None):
    """items: [(result, error, covered or None …)]"""
    weights = weights_of([item[0].job.key for item in items] if keys is None else keys)
    return Summary([item[1] for item in items], weights, [item[2] if len(item) > 2 and isinstance(item[2], (bool, type(None))) else None for item in items])
