"""Constants fitted again without a family of sources, and what each of them does.

    effects = measure(board)          # each constant ± 10 %: predictions of every scored row
    fits = refit(board, effects)      # {family: {key: value}}, fitted on all other families

The predictions are taken as log-linear in the constants near their values (measured from both sides), so that thousands of combinations need no
run; what is scored is a run of the program with the fitted values.
"""

import math
from collections import defaultdict

from stats import median

STEPS = (-0.3, -0.2, -0.1, -0.05, 0, 0.05, 0.1, 0.2, 0.3)  # of the logarithm
CAP = 0.3  # of a residual: what is wrong for another reason does not pull
RIDGE = 0.004  # of a family's loss, for a change of a constant by a third: what the rows do not say stays as it is


def fitted_keys(constants):
    """Those that time depends on and that are no documented default (sizes of buckets) and no width of an interval."""
    return [item["name"] for item in constants if item.get("value") and not item["name"].endswith("_ERROR")
            and item.get("unit") not in ("bytes", "elements", "±")]


class Effects:
    def __init__(self, keys, values, shares, slopes, sides):
        self.keys, self.values = keys, values
        self.shares = shares  # keys of shares of something: at most 1
        self.slopes = slopes  # {key: [d log prediction / d log constant, a row]}
        self.sides = sides  # {key: (results at -10 %, results at +10 %)}


def measure(board):
    constants = {item["name"]: item["value"] for item in board.program.constants() if "value" in item}
    keys = fitted_keys(board.program.constants())
    slopes, sides, active = {}, {}, []
    for key in keys:
        low, high = board.run_with({key: constants[key] * 0.9}), board.run_with({key: constants[key] * 1.1})
        slope = [(math.log(h.predicted_s / l.predicted_s) / math.log(1.1 / 0.9) if h.good and l.good else 0.0) for l, h in zip(low, high)]
        sides[key] = (low, high)
        if max((abs(s) for s in slope), default=0) > 0.002:
            slopes[key] = slope
            active.append(key)
    shares = {item["name"] for item in board.program.constants() if str(item.get("unit")).startswith("of ")}
    return Effects(active, constants, shares, slopes, sides)


class Loss:
    """Of the rows and pairs of some families at some change of the constants; lower is better."""

    def __init__(self, board, found):
        self.index = {id(r): i for i, r in enumerate(board.results)}
        self.base = [r.log_ratio if r.good and r.job.measured_s else None for r in board.results]
        self.groups = defaultdict(list)  # family → [[row]]
        grouped, seen = defaultdict(list), set()
        for i, r in enumerate(board.results):
            if self.base[i] is not None and not r.job.skip and r.job.key not in seen:
                seen.add(r.job.key)
                grouped[r.job.family, r.job.source, r.job.gpu, r.job.row["precision"], r.job.row["framework"]].append(i)
        for key, members in grouped.items():
            if len(members) > 1:
                self.groups[key[0]].append(members)
        self.pairs = defaultdict(list)
        for _, anchors, targets in found:
            if anchors[0].job.skip or targets[0].job.skip:
                continue
            self.pairs[targets[0].job.family].append((self.index[id(anchors[0])], self.index[id(targets[0])]))

    def family(self, name, x):
        total, count = 0.0, 0
        for members in self.groups.get(name, ()):
            middle = median([x[i] for i in members])
            total += sum(min(abs(x[i] - middle), CAP) + min(abs(x[i]), CAP) for i in members)  # among themselves, and absolute
            count += len(members)
        value = total / count if count else 0.0
        pairs = self.pairs.get(name)
        if pairs:
            value += 2 * sum(min(abs(x[t] - x[a]), CAP) for a, t in pairs) / len(pairs)
        return value

    def families(self):
        return sorted(set(self.groups) | set(self.pairs))

    def of(self, families, x):
        return sum(self.family(name, x) for name in families)


def descend(loss, families, effects, rounds=2):
    """Coordinate descent; {key: change of the logarithm}."""
    change, x = {}, list(loss.base)

    def cost(x, change):
        return loss.of(families, x) + RIDGE * len(families) * sum((d / 0.3) ** 2 for d in change.values())

    best = cost(x, change)
    for _ in range(rounds):
        for key in effects.keys:
            slope = effects.slopes[key]
            now = change.get(key, 0)
            for step in STEPS:
                move = step - now
                if move == 0 or key in effects.shares and effects.values[key] * math.exp(step) > 1:
                    continue
                trial = [v if v is None else v + slope[i] * move for i, v in enumerate(x)]
                value = cost(trial, {**change, key: step})
                if value < best * 0.9985:
                    best, x, now = value, trial, step
                    change[key] = step
    return {key: d for key, d in change.items() if d}


def refit(board, effects, found):
    """({family: {key: value}}, {family: {key: change}}, {key: change} of all families together). Each fit starts at the shipped values, which RIDGE holds it
    to as well: what is left out is the family's say in the fit, not what whoever chose the shipped values had seen."""
    loss = Loss(board, found)
    every = loss.families()
    together = descend(loss, every, effects)
    fits, changes = {}, {}
    for family in sorted({r.job.family for r in board.results}):
        rest = [name for name in every if name != family]
        changes[family] = descend(loss, rest, effects) if len(rest) < len(every) else together
        fits[family] = {key: effects.values[key] * math.exp(change) for key, change in changes[family].items()}
    return fits, changes, together
