"""Errors and what is said about them. Errors are signed, predicted / measured - 1."""

import math


def quantile(pairs, share):
    """Of (value, weight): the smallest value up to which `share` of the weight lies, between two of them the middle."""
    pairs = sorted(pair for pair in pairs if pair[1] > 0)
    total = sum(weight for _, weight in pairs)
    if not pairs:
        return math.nan
    target, seen = share * total, 0.0
    for index, (value, weight) in enumerate(pairs):
        seen += weight
        if math.isclose(seen, target, rel_tol=1e-12) and index + 1 < len(pairs):
            return (value + pairs[index + 1][0]) / 2
        if seen > target:
            return value
    return pairs[-1][0]


def median(values, weights=None):
    return quantile(list(zip(values, weights or [1] * len(values))), 0.5)


def weights_of(keys):
    """1 / how often a key is there: duplicates weigh once."""
    count = {}
    for key in keys:
        count[key] = count.get(key, 0) + 1
    return [1 / count[key] for key in keys]


class Summary:
    """rows, median |error|, p90, share within 10 %, bias (median of the signed errors), coverage of intervals."""

    def __init__(self, errors, weights=None, covered=None):
        weights = weights or [1] * len(errors)
        absolute = [(abs(error), weight) for error, weight in zip(errors, weights)]
        self.rows = len(errors)
        self.weight = sum(weights)
        self.median = quantile(absolute, 0.5)
        self.p90 = quantile(absolute, 0.9)
        self.mean = sum(a * w for a, w in absolute) / self.weight if self.weight else math.nan
        self.within = sum(w for a, w in absolute if a <= 0.1) / self.weight if self.weight else math.nan
        self.bias = quantile(list(zip(errors, weights)), 0.5)
        known = [(c, w) for c, w in zip(covered or [], weights) if c is not None]
        total = sum(w for _, w in known)
        self.coverage = sum(c * w for c, w in known) / total if total else math.nan

    def text(self, unit="rows"):
        if not self.rows:
            return f"no {unit}"
        alike = f" ({self.weight:.0f} different)" if self.weight < self.rows - 0.5 else ""
        words = [f"median {percent(self.median)}", f"p90 {percent(self.p90)}", f"within 10 % {percent(self.within, 0)}",
                 f"bias {percent(self.bias, sign=True)}"]
        if self.coverage == self.coverage:
            words.append(f"in interval {percent(self.coverage, 0)}")
        return ", ".join(words) + f", {self.rows} {unit}{alike}"


def percent(value, digits=1, sign=False):
    return "-" if value != value else f"{value * 100:{'+' if sign else ''}.{digits}f} %"


def levels(items, shipped=None):
    """{level: correction of its logarithm} from items (family, level, log of measured over predicted): the median over families of their medians, a family
    of n rows with the weight √n (one with many rows is better known, but is one code base), and n / (n + 1) of it for n families: one is little to go by.
    `shipped`: the logarithm of the factor that the predictions already hold; it is what is fitted, the correction is the new one less the shipped one."""
    grouped = {}
    for family, level, value in items:
        grouped.setdefault(level, {}).setdefault(family, []).append(value)
    out = {}
    for level, families in grouped.items():
        have = (shipped or {}).get(level, 0)
        votes = [have + median(values) for values in families.values()]
        out[level] = median(votes, [math.sqrt(len(values)) for values in families.values()]) * len(votes) / (len(votes) + 1) - have
    return out
