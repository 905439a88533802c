#!/usr/bin/python3
"""exact.py MACHINE LANE WIRE RECORDS RESULTS.jsonl [SLOW-RANK PER-CENT]
exact.py MACHINE LANE LANE ratio RESULTS.jsonl RESULTS.jsonl

Are the times of results made on the doubles those of the machine file? The model (tests/fake/README.md) is computed
here anew: alpha + bytes on the bus / bus bandwidth, between hosts both alphas and the lower rate. RECORDS: how many there
must be. With SLOW-RANK every time is PER-CENT longer and that rank is named from 64 KiB on. `ratio`: the rate of two lanes,
from the slope between two sizes of all_reduce, is the ratio in the machine file.
"""
import json
import os
import sys

TOLERANCE = 1e-3
UNITS = {"us": 1e-6, "GB/s": 1e9}


def quantity(number, unit):
    return float(number) * UNITS[unit]


def read_paths(path, paths=None):
    """{"lane auto": {"all": (alpha, rate), "all_reduce": …}}: later lines replace earlier ones."""
    paths = {} if paths is None else paths
    section = ""
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line.startswith("["):
                section = line.strip("[]")
            elif line.startswith("include"):
                other = line.split("=")[1].strip()
                read_paths(os.path.join(os.path.dirname(path), other), paths)
            elif section.startswith(("lane ", "wire ")) and "=" in line:
                key, value = (part.strip() for part in line.split("=", 1))
                if key in ("when", "refuse"):
                    continue
                words = value.split()
                lane = paths.setdefault(section, {})
                if key == "all":
                    lane.clear()
                lane[key] = (quantity(*words[0:2]), quantity(*words[2:4]))
    return paths


def path_of(paths, name, collective):
    return paths[name].get(collective, paths[name].get("all"))


def bus_bytes(collective, size, ranks):
    factor = {"all_reduce": 2 * (ranks - 1) / ranks, "broadcast": 1, "reduce": 1, "sendrecv": 1}
    return size * factor.get(collective, (ranks - 1) / ranks)


def model(paths, lane, wire, record):
    """Seconds of a call."""
    alpha, rate = path_of(paths, "lane " + lane, record["collective"])
    if record["hosts"] > 1:
        between = path_of(paths, "wire " + wire, record["collective"])
        alpha, rate = alpha + between[0], min(rate, between[1])
    return alpha + bus_bytes(record["collective"], record["bytes"], record["ranks"]) / rate


def read_records(path):
    with open(path, encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if line["kind"] == "record"]


def off(found, expected):
    return abs(found / expected - 1) > TOLERANCE


def faults_of(paths, lane, wire, slow_rank, factor, record):
    time = model(paths, lane, wire, record) * factor
    busbw = bus_bytes(record["collective"], record["bytes"], record["ranks"]) / time
    found = record["time_ns"]["median"] * 1e-9
    if off(found, time):
        yield f"{found * 1e6:.3f} us, the model says {time * 1e6:.3f}"
    if off(record["busbw_bytes_per_s"], busbw):
        yield f"busbw {record['busbw_bytes_per_s']:.4g}, the model says {busbw:.4g}"
    if record.get("wrong_elements") != 0 or record["simulated"] is not True:
        yield "not verified, or not marked as simulated"
    if slow_rank is not None and record["bytes"] >= 65536 and record["slowest_rank"] != slow_rank:
        yield f"rank {record['slowest_rank']} is named as the slowest"
    estimated = record["collective"] in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
    if ("expected_ns" in record) != (estimated and record["case"] == "coll"):
        yield "NCCL's estimate is there where it should not be, or is not where it should"


def check(machine, lane, wire, count, results, slow_rank=None, per_cent=0):
    paths = read_paths(machine)
    records = read_records(results)
    slow_rank = None if slow_rank is None else int(slow_rank)
    failed = len(records) != int(count)
    if failed:
        print(f"{len(records)} records, expected {count}")
    for record in records:
        for fault in faults_of(paths, lane, wire, slow_rank, 1 + float(per_cent) / 100, record):
            print(f"{record['case']} {record['collective']} of {record['bytes']}, {record['ranks']} ranks on "
                  f"{record['hosts']} hosts, in place {record['in_place']}: {fault}")
            failed = True
    return failed


def slope(results):
    """Bus bandwidth without the alpha: from the smallest and the largest size."""
    records = sorted((r for r in read_records(results) if not r["in_place"]), key=lambda r: r["bytes"])
    first, last = records[0], records[-1]
    busses = [bus_bytes(r["collective"], r["bytes"], r["ranks"]) for r in (first, last)]
    return (busses[1] - busses[0]) / (last["time_ns"]["median"] - first["time_ns"]["median"]) * 1e9


def check_ratio(machine, lane, other, results, other_results):
    paths = read_paths(machine)
    expected = path_of(paths, "lane " + lane, "all_reduce")[1] / path_of(paths, "lane " + other, "all_reduce")[1]
    found = slope(results) / slope(other_results)
    print(f"{lane} over {other}: {found:.4f}, the machine file says {expected:.4f}")
    return off(found, expected)


arguments = sys.argv[1:]
if len(arguments) == 6 and arguments[3] == "ratio":
    sys.exit(check_ratio(*arguments[:3], *arguments[4:]))
if len(arguments) not in (5, 7):
    sys.exit(__doc__)
sys.exit(check(*arguments))
