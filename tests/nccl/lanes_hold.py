"""lanes_hold.py RECORDS MACHINE RANKS HOSTS LANES LEFT_OUT: what tests/nccl/check-lanes holds against a run on the doubles.

LANES: "auto,pcie=auto": those that must have records, with the name of the machine file's lane where it differs. Each record
is right, simulated, and its bus bandwidth that of the model within 1e-3. LEFT_OUT: "nvls=needs NVSwitches": those of the
context that must not have been run, with a part of the reason.
"""
import json
import os
import re
import sys

UNITS = {"us": 1e-6, "ms": 1e-3, "ns": 1e-9, "GB/s": 1e9, "MB/s": 1e6, "TB/s": 1e12}


def read_machine(path, sections):
    """[lane x] and [wire x] of a machine file: {(kind, name): {collective: (alpha_s, bytes_per_s)}}; "when" counts not."""
    section = None
    for line in open(path, encoding="utf-8"):
        line = line.split("#")[0].strip()
        if line.startswith("["):
            section = tuple(line.strip("[]").split())
            continue
        key, _, value = (part.strip() for part in line.partition("="))
        if key == "include":
            read_machine(os.path.join(os.path.dirname(path), value), sections)
        elif section and section[0] in ("lane", "wire"):
            numbers = re.fullmatch(r"([0-9.]+) (us|ms|ns) ([0-9.]+) (GB/s|MB/s|TB/s)", value)
            if numbers:
                alpha, unit, rate, rate_unit = numbers.groups()
                place = sections.setdefault(section, {})
                if key == "all":
                    place.clear()  # a later "all" is for every collective
                place[key] = (float(alpha) * UNITS[unit], float(rate) * UNITS[rate_unit])
    return sections


def bus_factor(collective, ranks):
    """nccl-tests' factors, over the record's size."""
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return 1 if collective in ("broadcast", "reduce", "sendrecv") else (ranks - 1) / ranks


def modelled(sections, lane, wire, collective, size, ranks):
    alpha, rate = (sections["lane", lane].get(collective) or sections["lane", lane]["all"])
    if wire:
        more, other = (sections["wire", wire].get(collective) or sections["wire", wire]["all"])
        alpha, rate = alpha + more, min(rate, other)
    on_bus = size * bus_factor(collective, ranks)
    return on_bus / (alpha + on_bus / rate)


def main():
    path, machine, ranks, hosts, lanes, left_out = sys.argv[1:]
    ranks, hosts = int(ranks), int(hosts)
    sections = read_machine(machine, {})
    lines = [json.loads(line) for line in open(path, encoding="utf-8")]
    context = lines[0]
    records = [line for line in lines if line["kind"] == "record" and line["case"] == "coll"]
    expected = dict(pair.partition("=")[::2] for pair in lanes.split(","))
    reasons = dict(pair.partition("=")[::2] for pair in left_out.split(",") if pair)
    wrong = []
    listed = {lane["name"]: lane.get("left_out") for lane in context["lanes"]}
    if {name for name, why in listed.items() if why is None} != set(expected):
        wrong.append(f"the context lists as run {[n for n, why in listed.items() if why is None]}, expected {list(expected)}")
    for name, part in reasons.items():
        if part not in (listed.get(name) or ""):
            wrong.append(f"lane {name}: left out because of {listed.get(name)!r}, expected {part!r}")
    if {record["lane"] for record in records} != set(expected):
        wrong.append(f"records of {sorted({record['lane'] for record in records})}, expected {sorted(expected)}")
    cases = {lane: {(r["collective"], r["bytes"]) for r in records if r["lane"] == lane} for lane in expected}
    for lane, of_lane in cases.items():
        of_auto = {case for case in cases["auto"] if lane not in ("tree", "nvls") or case[0] == "all_reduce"}
        if of_lane != of_auto or not of_lane:
            wrong.append(f"lane {lane}: not the cases of auto: {sorted(of_lane ^ of_auto)}")
    for record in records:
        name = f"{record['lane']} {record['collective']} {record['bytes']}"
        if record["wrong_elements"] != 0 or record["simulated"] is not True or record["ranks"] != ranks:
            wrong.append(f"{name}: wrong_elements {record['wrong_elements']}, {record['ranks']} ranks")
        wire = ("tcp" if record["lane"] == "tcp" else "rdma") if hosts > 1 else None
        lane = "auto" if record["lane"] == "tcp" else expected.get(record["lane"]) or record["lane"]
        model = modelled(sections, lane, wire, record["collective"], record["bytes"], ranks)
        if not abs(record["busbw_bytes_per_s"] / model - 1) <= 1e-3:
            wrong.append(f"{name}: {record['busbw_bytes_per_s'] / 1e9:.4f} GB/s, the model has {model / 1e9:.4f}")
    print("\n".join(wrong) or f"{os.path.basename(path)}: {len(records)} records in {len(expected)} lanes as modelled")
    return 1 if wrong else 0


sys.exit(main())
