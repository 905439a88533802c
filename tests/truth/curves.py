#!/usr/bin/env python3
"""Published curves against the model's cost of a collective: hides a part of what was measured,
asks for it (fabric_probe), prints the errors of each kind.

    tests/truth/curves.py [--curves FILE] [--probe PROGRAM] [--residuals FILE]

Kinds: sizes (every second size hidden), ranks (another rank count of the same node), nodes (more
nodes than any that was given; at least two node counts are known of the platform), between (a node
count between two that were given), locals (another count of ranks per node, of as many nodes),
gathers (all_gather, reduce_scatter from all_reduce), reduce (all_reduce from the two), others
(all-to-all from the rest), specification (nothing measured at all: GPU, links, line rate of the
NICs, which curve_platforms.csv says), held out (the same with the shares and hops fitted anew on
all other platforms).
"""
import argparse
import collections
import csv
import json
import math
import os
import subprocess
import sys

from tables import read_table

HERE = os.path.dirname(os.path.abspath(__file__))


class Curve:
    def __init__(self, platform, hosts, ranks, collective):
        self.platform, self.hosts, self.ranks, self.collective = platform, hosts, ranks, collective
        self.points = []

    def given(self, points=None):
        return {"collective": self.collective, "ranks": self.ranks, "hosts": self.hosts,
                "points": [[int(b), t] for b, t in (points or self.points)]}


def read(path):
    """Curves in the order of the file; a size measured several times: the middle one."""
    times = collections.OrderedDict()
    for row in read_table(path)[0]:
        try:
            bytes_, us = float(row["size_bytes"]), float(row["time_us"])
            key = (row["platform"], int(row["nodes"]), int(row["gpus"]), row["collective"])
        except (KeyError, ValueError):
            continue
        if 0 < us < math.inf and 0 < bytes_ < math.inf and min(key[1:3]) > 0:
            times.setdefault(key, {}).setdefault(bytes_, []).append(us * 1e3)
    curves = []
    for key, sizes in times.items():
        curve = Curve(*key)
        curve.points = sorted((b, sorted(t)[len(t) // 2]) for b, t in sizes.items())
        curves.append(curve)
    return curves


def machines(path=os.path.join(HERE, "curve_platforms.csv")):
    with open(path, newline="") as stream:
        return list(csv.DictReader(line for line in stream if not line.startswith("#")))


def machine_of(platform, table):
    for row in table:
        if platform.startswith(row["platform"]):
            return row
    return None


def request_of(platform, table):
    """The machine's part of a request: what a quote says of it, as far as it is known."""
    row = machine_of(platform, table)
    if row is None:
        return {"gpus_per_node": 0}
    request = {"gpu": row["gpu"], "link": row["link"], "gpus_per_node": int(row["gpus_per_node"])}
    if row["nic_gbps"]:
        request["nic_gbps"] = float(row["nic_gbps"])
        request["nic_count"] = int(row["nic_count"])
    return request


def ask_of(curve, points=None):
    return {"collective": curve.collective, "ranks": curve.ranks, "hosts": curve.hosts,
            "bytes": [b for b, _ in (points or curve.points)]}


def experiments(curves, table):
    """(kind, curve asked for, its points, request)"""
    platforms = collections.OrderedDict()
    for curve in curves:
        platforms.setdefault(curve.platform, []).append(curve)
    for platform, own in platforms.items():
        base = request_of(platform, table)

        def hidden(kind, asked, given, points=None):
            if given and asked:
                yield from ((kind, c, points or c.points,
                             dict(base, curves=given, ask=[ask_of(c, points)])) for c in asked)

        for curve in own:
            if len(curve.points) >= 5:
                inside = curve.points[1:-1:2]
                kept = [p for p in curve.points if p not in inside]
                yield from hidden("sizes", [curve], [curve.given(kept)], inside)
        for ranks in sorted({c.ranks for c in own if c.hosts == 1}):
            rest = [c.given() for c in own if c.hosts == 1 and c.ranks != ranks]
            yield from hidden("ranks", [c for c in own if c.hosts == 1 and c.ranks == ranks], rest)
        for local in sorted({c.ranks / c.hosts for c in own}):
            like = [c for c in own if c.ranks / c.hosts == local]
            counts = sorted({c.hosts for c in like if c.hosts > 1})
            for at in counts:
                less = [c.given() for c in like if c.hosts < at]
                more = [c.given() for c in like if c.hosts > at]
                asked = [c for c in like if c.hosts == at]
                several = any(c["hosts"] > 1 for c in less)
                if several:
                    yield from hidden("nodes", asked, less)
                if several and more:
                    yield from hidden("between", asked, less + more)
        for local in sorted({c.ranks / c.hosts for c in own if c.hosts > 1}):
            for hosts in sorted({c.hosts for c in own if c.hosts > 1}):
                asked = [c for c in own if c.ranks / c.hosts == local and c.hosts == hosts]
                rest = [c.given() for c in own if c.ranks / c.hosts != local and c.hosts == hosts]
                yield from hidden("locals", asked, rest)
        for group in sorted({(c.hosts, c.ranks) for c in own}):
            here = [c for c in own if (c.hosts, c.ranks) == group]
            reduces = [c for c in here if c.collective == "all_reduce"]
            gathers = [c for c in here if c.collective in ("all_gather", "reduce_scatter")]
            others = [c for c in here if c not in reduces and c not in gathers]
            yield from hidden("gathers", gathers, [c.given() for c in reduces])
            yield from hidden("reduce", reduces, [c.given() for c in gathers])
            yield from hidden("others", others, [c.given() for c in reduces + gathers])
        if "gpu" in base:
            known = [c for c in own if c.hosts == 1 or "nic_gbps" in base]
            yield from (("specification", c, c.points, dict(base, ask=[ask_of(c)]))
                        for c in known)


def run(probe, items):
    text = "".join(json.dumps(item[3]) + "\n" for item in items)
    out = subprocess.run([probe], input=text, capture_output=True, text=True, check=True).stdout
    replies = [json.loads(line) for line in out.splitlines()]
    for reply in replies:
        if reply.get("error"):
            raise ValueError(f"{probe}: {reply['error']}")
    return replies


class Residual:
    def __init__(self, kind, curve, bytes_, measured, answer, i):
        self.kind, self.curve, self.bytes, self.measured = kind, curve, bytes_, measured
        self.predicted = answer["time_ns"][i]
        self.inside = answer["low_ns"][i] <= measured <= answer["high_ns"][i]
        self.how = answer["how"]

    @property
    def log(self):
        return math.log(self.predicted / self.measured)

    @property
    def error(self):
        return abs(self.predicted / self.measured - 1)


def read_off(items, replies):
    found, unknown = [], collections.Counter()
    for (kind, curve, points, _), reply in zip(items, replies):
        if "error" in reply["answers"][0]:
            unknown[kind] += len(points)
            continue
        found += [Residual(kind, curve, b, t, reply["answers"][0], i)
                  for i, (b, t) in enumerate(points)]
    return found, unknown


def residuals(curves, table, probe, quick=False):
    items = list(experiments(curves, table))
    found, unknown = read_off(items, run(probe, items))
    if not quick:
        found += held_out([item for item in items if item[0] == "specification"], probe)
    return found, unknown


# ---- specification with the constants of all other platforms ---------------------------------------

GRID = {"LINK_SHARE": (.70, .73, .76, .79, .82, .85), "WIRE_SHARE": (.80, .84, .87, .90, .93, .96),
        "WIRE_LATENCY_NS": (6e3, 9e3, 12e3, 16e3, 20e3, 25e3)}


def loss_by_platform(items, replies):
    """Sum over a platform's curves of the mean error, a factor of e at most a point."""
    losses = collections.Counter()
    for (_, curve, points, _), reply in zip(items, replies):
        answer = reply["answers"][0]
        if "error" not in answer:
            losses[family(curve)] += sum(min(abs(math.log(t / m)), 1)
                                         for (_, m), t in zip(points, answer["time_ns"])) / len(points)
    return losses


def family(curve):
    """What is held out together: the platform's text without its variant."""
    return curve.platform.split("; env variant")[0]


def held_out(items, probe):
    tried = {}
    for key, values in GRID.items():
        for value in values:
            asked = [(k, c, p, dict(r, assume=[f"{key}={value}"])) for k, c, p, r in items]
            tried[key, value] = loss_by_platform(asked, run(probe, asked))
    found = []
    for name in sorted({family(c) for _, c, _, _ in items}):
        chosen = []
        for key, values in GRID.items():
            best = min(values, key=lambda v: sum(x for n, x in tried[key, v].items() if n != name))
            chosen.append(f"{key}={best}")
        own = [("held out", c, p, dict(r, assume=chosen)) for _, c, p, r in items if family(c) == name]
        found += read_off(own, run(probe, own))[0]
    return found


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else math.nan


KINDS = ("sizes", "ranks", "nodes", "between", "locals", "gathers", "reduce", "others",
         "specification", "held out")
BANDS = (("all sizes", 0, math.inf), ("< 1 MiB", 0, 2**20), ("1-64 MiB", 2**20, 2**26 + 1),
         ("> 64 MiB", 2**26 + 1, math.inf))


def table_of(found):
    yield "| Hidden | Curves | Points | all sizes | < 1 MiB | 1–64 MiB | > 64 MiB | bias | in the interval |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for kind in KINDS:
        own = [r for r in found if r.kind == kind]
        cells = []
        for _, low, high in BANDS:
            errors = [r.error for r in own if low <= r.bytes < high]
            cells.append("–" if not errors else
                         f"{100 * quantile(errors, .5):.0f} / {100 * quantile(errors, .9):.0f} %")
        bias = quantile([r.log for r in own], .5)
        inside = sum(r.inside for r in own) / len(own) if own else math.nan
        yield (f"| {kind} | {len({id(r.curve) for r in own})} | {len(own)} | " + " | ".join(cells) +
               f" | {100 * math.expm1(bias):+.0f} % | {100 * inside:.0f} % |" if own else
               f"| {kind} | 0 | 0 |")


def summary(found, unknown):
    """One line a claim, for ci/validate."""
    groups = (("measured, other sizes", ("sizes",)), ("other ranks or nodes", ("ranks", "nodes", "between", "locals")),
              ("other collectives", ("gathers", "reduce", "others")), ("specifications", ("held out",)))
    for title, kinds in groups:
        errors = [r.error for r in found if r.kind in kinds]
        large = [r.error for r in found if r.kind in kinds and r.bytes >= 2**20]
        if errors:
            yield (f"total curves, {title}: median {100 * quantile(errors, .5):.1f} %, p90 "
                   f"{100 * quantile(errors, .9):.1f} %, {len(errors)} points; from 1 MiB on median "
                   f"{100 * quantile(large, .5):.1f} %, p90 {100 * quantile(large, .9):.1f} %, {len(large)} points; in interval "
                   f"{100 * sum(r.inside for r in found if r.kind in kinds) / len(errors):.0f} %")
    if unknown:
        yield "not answered: " + ", ".join(f"{n} points of {k}" for k, n in unknown.items())


def find_probe():
    root = os.path.dirname(os.path.dirname(HERE))
    for path in (os.environ.get("NW_FABRIC_PROBE"), os.path.join(root, "build", "tests", "fabric_probe")):
        if path and os.access(path, os.X_OK):
            return path
    raise SystemExit("tests/truth/curves.py: no build/tests/fabric_probe; build it first")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--curves", default=os.path.join(HERE, "published", "busbw_curves.csv"), help="source, platform, gpus, nodes, collective, size_bytes, time_us (CSV)")
    parser.add_argument("--probe", help="fabric_probe, a program of the build")
    parser.add_argument("--quick", action="store_true", help="no refit")
    parser.add_argument("--residuals", help="every point into this CSV file")
    args = parser.parse_args()
    found, unknown = residuals(read(args.curves), machines(), args.probe or find_probe(), args.quick)
    for line in [*table_of(found), "", *summary(found, unknown)]:
        print(line)
    if args.residuals:
        with open(args.residuals, "w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow("kind platform hosts ranks collective bytes measured_us predicted_us log how"
                            .split())
            for r in found:
                c = r.curve
                writer.writerow([r.kind, c.platform, c.hosts, c.ranks, c.collective, int(r.bytes),
                                 f"{r.measured / 1e3:.1f}", f"{r.predicted / 1e3:.1f}",
                                 f"{r.log:.3f}", r.how])


if __name__ == "__main__":
    sys.exit(main())
