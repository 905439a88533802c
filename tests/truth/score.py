"""The claims: ratio, anchored, specifications only, memory. All by families of sources held out (README.md).

    board = Board(jobs, program)      # runs the batch
    board.specifications(), board.anchored({}), board.ratios(found, {})
"""

import math
from collections import Counter, defaultdict

from stats import Summary, levels, median, weights_of


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


ANCHORS = 8  # of a group, evenly spaced in the order of the file


class Board:
    def __init__(self, jobs, program, assume=None):
        self.jobs = jobs
        self.program = program
        self.assume = assume or {}  # in every request
        self.results = self.run_with({})
        self.own = [r for r in self.results if not r.job.training]  # what is to be scored
        self.unanswered = Counter()  # claim → answers of its own that failed, in all calls

    def ask(self, jobs, extras):
        """Answers to the jobs' requests with some keys more; `extras`: one dict a job."""
        requests = []
        for number, (job, extra) in enumerate(zip(jobs, extras)):
            values = {**self.assume, **extra.get("assume", {})}
            listed = {"assume": [f"{key}={value!r}" for key, value in sorted(values.items())]} if values else {}
            requests.append({**job.request, **extra, **listed, "id": number})
        return [Result(job, answer) for job, answer in zip(jobs, self.program.predict(requests))]

    def run_with(self, assume):
        return self.ask(self.jobs, [with_assume(assume)] * len(self.jobs))

    def run_by_family(self, assume_of):
        return self.ask(self.jobs, [with_assume(assume_of.get(job.family)) for job in self.jobs])

    # ---- absolute, from specifications only --------------------------------------------------------

    def steps(self, results=None):
        return [r for r in results or self.own if r.good and r.job.measured_s and not r.job.skip and not r.job.training]

    def factors(self, shipped=None, slopes=None, changes=None):
        """{family: function(result) → factor on the predicted step}, fitted without that family; `slopes`, `changes`: fit.py, the constants
        that the family's predictions are made with."""
        index = {id(r): i for i, r in enumerate(self.results)}
        rows = [r for r in self.results if r.good and r.job.measured_s and not r.job.skip]
        shipped = shipped or {}
        found = {}
        for family in {r.job.family for r in rows}:
            change = (changes or {}).get(family, {})
            items = [(r.job.family, r.job.profile, -r.log_ratio - sum(slopes[key][index[id(r)]] * d for key, d in change.items()))
                     for r in rows if r.job.family != family]
            level = levels(items, {name: math.log(value) for name, value in shipped.items() if value})

            def factor(result, level=level):
                name = result.job.profile
                return math.exp(level.get(name, -math.log(shipped.get(name) or 1)))
            found[family] = factor
        return found

    def specifications(self, results=None, factors=None):
        """[(result, error, covered)]"""
        out = []
        for r in self.steps(results):
            f = factors[r.job.family](r) if factors else 1
            covered = float(r.low * f <= r.job.measured_s <= r.high * f) if r.low == r.low else None
            out.append((r, r.predicted_s * f / r.job.measured_s - 1, covered))
        return out

    # ---- absolute, anchored ------------------------------------------------------------------------

    def time_factors(self, results, assume_of):
        """What a row's own measured step says about its stack: --time-factor, {id of the result: factor}."""
        extras = [{**anchor_keys(r.job.measured_s, r.job.request), **with_assume(assume_of.get(r.job.family))} for r in results]
        answers = self.ask([r.job for r in results], extras)
        self.unanswered["anchor's own step"] += sum(not answer.good or not answer.answer.get("step_time_factor") for answer in answers)
        return {id(r): answer.answer.get("step_time_factor") for r, answer in zip(results, answers) if answer.good}

    def without_group(self, least_hidden=0):
        """Scored rows that no other configuration can anchor."""
        inside = {id(r) for members in self.groups(least_hidden) for r in members}
        return [r for r in self.steps() if (r.job.shape.hidden or 0) >= least_hidden and id(r) not in inside]

    def groups(self, least_hidden=0):
        groups = defaultdict(list)
        for r in self.steps():
            if (r.job.shape.hidden or 0) >= least_hidden:
                groups[r.job.source, r.job.gpu, r.job.row["precision"], r.job.row["framework"]].append(r)
        return [members for members in groups.values() if len({r.job.key for r in members}) > 1]

    def anchored(self, assume_of, least_hidden=0):
        """[(result, error, covered)]: rows of a group anchored by others of it in turn; the median of a row's |errors| with the sign of their median, the
        share of its intervals that hold the measured step. And the same with the median factor of all others as the anchor."""
        groups = self.groups(least_hidden)
        factor = self.time_factors([r for members in groups for r in members], assume_of)
        asked, extras, owner = [], [], []
        for members in groups:
            anchors = [members[int((n + 0.5) * len(members) / ANCHORS)] for n in range(ANCHORS)] if len(members) > ANCHORS else members
            for r in members:
                more = with_assume(assume_of.get(r.job.family))
                # duplicates do not anchor each other: they are one configuration
                turns = [factor.get(id(a)) for a in anchors if a.job.key != r.job.key]
                rest = [factor.get(id(o)) for o in members if o.job.key != r.job.key and factor.get(id(o))]
                for kind, value in [("turn", f) for f in turns if f] + ([("rest", median(rest))] if rest else []):
                    asked.append(r.job)
                    extras.append({"time-factor": value, **more})
                    owner.append((r, kind))
        turn, rest = defaultdict(list), []
        for (r, kind), answer in zip(owner, self.ask(asked, extras)):
            if not answer.good:
                self.unanswered["anchored step"] += 1
                continue
            item = (answer.predicted_s / r.job.measured_s - 1, float(answer.low <= r.job.measured_s <= answer.high) if answer.low == answer.low else None)
            if kind == "turn":
                turn[id(r)].append(item)
            else:
                rest.append((r, *item))
        out = []
        for r in (r for members in groups for r in members):
            if turn[id(r)]:
                covered = [c for _, c in turn[id(r)] if c is not None]
                out.append((r, middle_error([error for error, _ in turn[id(r)]]), sum(covered) / len(covered) if covered else None))
        return out, rest

    # ---- ratio -------------------------------------------------------------------------------------

    def find_pairs(self, pairs, training=False):
        """[(pair, anchors, targets)], [(pair, why not)] by the columns that name the rows (the pairs' names may be cut short). Of several
        candidates the two that agree in most options and have the pair's measured ratio, else all that do agree, whose means have it."""
        index = defaultdict(list)
        for r in self.results if training else self.own:
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


    def ratios(self, found, assume_of):
        """[(pair, target, error, covered, anchor)]: the target's step as predicted from the anchor's measured one."""
        factors = {}
        for pair, anchors, _ in found:
            key = tuple(id(a) for a in anchors)
            factors.setdefault(key, anchors)
        listed = list(factors.values())
        extras = [{**anchor_keys(sum(a.job.measured_s for a in anchors) / len(anchors), anchors[0].job.request),
                   **with_assume(assume_of.get(anchors[0].job.family))} for anchors in listed]
        answers = self.ask([anchors[0].job for anchors in listed], extras)
        self.unanswered["anchor of a pair"] += sum(not answer.good or not answer.answer.get("step_time_factor") for answer in answers)
        factor = {tuple(id(a) for a in anchors): answer for anchors, answer in zip(listed, answers)}
        asked, more, kept = [], [], []
        for pair, anchors, targets in found:
            answer = factor[tuple(id(a) for a in anchors)]
            if answer.good and answer.answer.get("step_time_factor"):
                asked.append(targets[0].job)
                more.append({"time-factor": answer.answer["step_time_factor"], **with_assume(assume_of.get(targets[0].job.family))})
                kept.append((pair, anchors, targets, answer))
        out = []
        for (pair, anchors, targets, anchor), target in zip(kept, self.ask(asked, more)):
            if not target.good:
                self.unanswered["target of a pair"] += 1
            else:
                step = (target.predicted_s / work(targets[0])) / (anchor.predicted_s / work(anchors[0]))
                measured = float(pair["measured_step_ratio"])
                low, high = target.low / target.predicted_s, target.high / target.predicted_s
                covered = float(low * step <= measured <= high * step) if low == low else None
                out.append((pair, targets[0], step / measured - 1, covered, anchors[0]))
        return out


def middle_error(errors):
    """The median of |errors| (of an even number the mean of the middle two), with the sign of the median error."""
    return math.copysign(median([abs(error) for error in errors]), median(errors))


def with_assume(values):
    return {"assume": values} if values else {}


def anchor_keys(measured_s, request):
    return {"measured-step": f"{measured_s:.9g}s", "on": request["ranks"], "measured-nodes": int(request["nodes"])}


def unique(items):
    return list({id(item): item for item in items}.values())


def mean_time(results):
    """Measured, of a unit of work."""
    return sum(r.job.measured_s / work(r) for r in results) / len(results)


def work(result):
    """Tokens (or samples) of a step and GPU."""
    request = result.job.request
    return request["global-batch"] * (request.get("seq") or 1) / request["ranks"]


def measured_ratio(anchor, target):
    return (target.job.measured_s / work(target)) / (anchor.job.measured_s / work(anchor))


def differences(a, t):
    """How many options other than what more GPUs change the two rows differ in."""
    free = {"id", "ranks", "nodes", "gpus-per-node", "global-batch", "nic-gbps", "nic-count", "shard"}
    names = (set(a.job.request) | set(t.job.request)) - free
    notes = re_version(a.job.row["notes"]) != re_version(t.job.row["notes"])
    return sum(a.job.request.get(name) != t.job.request.get(name) for name in names) + notes


def re_version(notes):
    return notes.split(";")[0][:60]


def pair_weights(ratio):
    """Pairs of the same two configurations weigh once; `ratio`: of Board.ratios."""
    return weights_of([(anchor.job.key, target.job.key) for _, target, _, _, anchor in ratio])


def is_hard(pair):
    return float(pair["measured_step_ratio"]) >= 1.15 or float(pair["dp_comm_over_anchor_step"] or 0) > 0.15


def summary(items):
    """items: [(result, error, covered or None)]"""
    return Summary([item[1] for item in items], weights_of([item[0].job.key for item in items]), [item[2] for item in items])
