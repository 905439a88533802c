#!/usr/bin/env python3
"""compare.py FOLDER icount|smp CHECK…: judges what the checks left in FOLDER/CHECK; prints every figure and what is wrong.

Figures are held against each other in virtual time only (icount)."""
import json
import math
import pathlib
import re
import sys

import topology

failures = []
figures = 0


def fail(what):
    failures.append(what)


def text(path):
    return path.read_text(errors="replace") if path.exists() else ""


def close(what, found, wanted, tolerance, unit):
    """Both to three digits, and the difference; a figure that is not there is a failure."""
    global figures
    figures += 1
    if not (math.isfinite(found) and math.isfinite(wanted) and found > 0 and wanted > 0):
        return fail(f"{what}: {found} {unit}, wanted {wanted} {unit}")
    off = found / wanted - 1
    print(f"  {what}: {found:.4g} {unit}, {wanted:.4g} wanted: {off:+.2%}")
    if abs(off) > tolerance:
        fail(f"{what}: {found:.4g} {unit} is {off:+.1%} off {wanted:.4g} (accepted: {tolerance:.0%})")


def ended_well(out, name):
    status = text(out / f"{name}.status").split()
    if status and set(status) == {"0"}:
        return True
    said = " | ".join((text(out / f"{name}.client") + text(out / f"{name}.server")).split("\n")[-8:])
    fail(f"{out.name}/{name}: ended with {status} (client, server): {said}")
    return False


def perftest(out, name):
    """The last row of perftest's table: bandwidth as bytes per second (its "MB" are MiB), latency as ns. It exits with 0 after
    a clock that it could not calibrate as well, and prints 0.00, inf or nan: then NAN."""
    if not ended_well(out, name):
        return math.nan
    rows = [line.split() for line in text(out / f"{name}.client").splitlines() if re.match(r"\s*\d+\s+\d+\s+\S+\s", line)]
    if not rows:
        return math.nan
    row = [float(cell) for cell in rows[-1]]
    # size, iterations, then of a bandwidth peak, average, messages; of a latency min, max, typical, average, deviation, two tails
    value = row[4] * 1e3 if len(row) > 6 else row[3] * 2**20
    return value if value > 0 else math.nan


def ours(out, name):
    """The probe's result, from the side that has one: its values by name; {} after a failure."""
    if not ended_well(out, name):
        return {}
    lines = re.findall(r"(?m)^result .*", text(out / f"{name}.client") + text(out / f"{name}.server"))
    if not lines:
        fail(f"{out.name}/{name}: no result")
        return {}
    found = {key: float(value) if re.fullmatch(r"[\d.e+-]+", value) else value for key, value in re.findall(r"(\w+)=(\S+)", lines[0])}
    if found["wrong"] != 0:
        fail(f"{out.name}/{name}: {found['wrong']:.0f} bytes are wrong")
    return found


def figures_check(out, exact):
    for mine, theirs, key, factor, unit in (
        ("write", "ib_write_bw", "MB_per_s", 1e-6, "MB/s"),
        ("read", "ib_read_bw", "MB_per_s", 1e-6, "MB/s"),
        ("send", "ib_send_bw", "MB_per_s", 1e-6, "MB/s"),
        ("latency", "ib_send_lat", "median_us", 1e-3, "us"),
    ):
        found, wanted = ours(out, mine).get(key, math.nan), perftest(out, theirs) * factor
        if exact:
            close(f"{mine} against {theirs}", found, wanted, 0.02, unit)
    for name, key, wanted in (("both-ways", "bytes", 32768), ("queues", "qps", 4), ("odd", "bytes", 4097), ("small", "bytes", 1), ("by-cm", "op", "write"), ("loop", "op", "send")):
        if (found := ours(out, name).get(key)) != wanted:
            fail(f"{name}: {key} is {found}, not {wanted}")
    listed = re.findall(r"(?m)^port (\S+) state=active link=ethernet .*mtu=4096 .*software=1", text(out / "list"))
    if listed != ["rxe0/1", "rxe1/1"]:
        fail(f"list: {text(out / 'list')}")


PAYLOAD = 4096 / 4154  # of a packet of 4096 bytes: Ethernet 14, IP 20, UDP 8, BTH 12, ICRC 4


def shaped_check(out, exact):
    def rate(name):
        return ours(out, name).get("MB_per_s", math.nan)

    for name, bits in (("write.100mbit", 100e6), ("write.400mbit", 400e6), ("read.400mbit", 400e6), ("send.400mbit", 400e6), ("write.netem", 400e6)):
        close(name, rate(name), bits / 8 * PAYLOAD / 1e6, 0.02, "MB/s")
    longer, shorter = (ours(out, f"latency.{delay}").get("median_us", math.nan) for delay in ("3ms", "1ms"))
    close("2 ms more delay", (longer - shorter) / 1e3, 2, 0.02, "ms")
    for op in ("write", "read", "send"):
        ours(out, f"{op}.loss")  # to the end, every byte right
    dropped = re.search(r"dropped (\d+)", text(out / "loss"))
    print(f"  with losses: {dropped and dropped.group(1)} packets of v0 lost")
    if not dropped or int(dropped.group(1)) == 0:
        fail("no packet was lost")


def records(path):
    found = []
    for line in text(path).splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            fail(f"{path.name}: not JSON: {line[:100]}")
    return found


def hosts_check(out, exact):
    """The program over two hosts: MPI over UCX, and its case nic from the one device to the other against perftest's figures."""
    status = text(out / "bench.status").strip()
    rows = [record for record in records(out / "bench.jsonl") if record.get("kind") == "record"]
    if status != "0" or not rows:
        return fail(f"bench: ended with {status}, {len(rows)} records: {text(out / 'bench.err')[-600:]}")
    for row in rows:
        what = " ".join(str(row.get(key, "")) for key in ("case", "collective", "nic_a", "nic_b", "bytes"))
        if row["hosts"] != 2 or row["rc"] != "NW_OK" or row["wrong_elements"] != 0:
            fail(f"bench: {what}: {row['hosts']} hosts, {row['rc']}, wrong_elements {row['wrong_elements']}")
    cases = {row["case"] for row in rows}
    if cases != {"coll", "nic"}:
        fail(f"bench: records of {sorted(cases)}")
    crossed = float(text(out / "bench.wire") or 0)
    print(f"  {len(rows)} records, {crossed / 1e6:.0f} MB over the RDMA wire")
    if crossed < 40e6:
        fail(f"bench: {crossed / 1e6:.1f} MB crossed the RDMA wire, not 40 and more")
    across = [row for row in rows if row["case"] == "nic" and row["collective"] == "write" and row["nic_a"] != row["nic_b"]]
    if len(across) < 2:
        fail(f"bench: {len(across)} writes between rxe0 and rxe1")
    for row in across if exact else ():  # 3 %: its samples are of a few messages, perftest's of 500, and each has a first one
        wanted = perftest(out.parent / "figures", "ib_write_bw") / 1e6
        close(f"nic write {row['nic_a']} to {row['nic_b']} against ib_write_bw", row["algbw_bytes_per_s"] / 1e6, wanted, 0.03, "MB/s")


# What each fault must say, on which side, with which exit status, and within how many seconds of the guest's time after it.
FAULTS = (
    ("gid-absent", "client", 2, r"rxe0/1 has no GID of index 9; its table: 0 = fe80::.*; 1 = 192\.0\.2\.1 \(RoCE v2, IPv4\)", 20),
    ("gid-kind", "client", 2, r"GID index 0 of .*rxe0/1 .*and 1 of .*rxe1/1 .*are of no one kind", 20),
    ("mtu-wished", "client", 2, r"rxe0/1 cannot do an RDMA MTU of 4096: 1024 is in force there", 20),
    ("mtu-of-switch", "client", 1, r"no acknowledgement in spite of all retries .*MTU larger than the switches pass", 20),
    ("memlock", "client", 1, r"rxe0/1: registering .* was refused .*: a process may lock 64 KiB here\. Raise it: ulimit -l", 20),
    ("peer-killed", "client", 1, r"from node1 rxe0/1 .* to node1 rxe1/1 .*no acknowledgement in spite of all retries .*the other side is gone", 20),
    ("peer-killed-send", "client", 1, r"no acknowledgement in spite of all retries .*the other side is gone", 20),
    ("lost", "client", 1, r"transport retry counter exceeded.*packets do not arrive", 20),
    ("lost-for-ever", "client", 1, r"nothing has moved for 3(\.\d+)? ?s while", 20),
    ("port-down", "client", 1, r"from node1 rxe0/1 .*the port went down", 20),
    ("port-is-down", "client", 1, r"RDMA port rxe0/1 is down: ", 20),
)


def faults_check(out, exact):
    for name, side, wanted, pattern, limit in FAULTS:
        status = dict(zip(("client", "server"), text(out / f"{name}.status").split()))
        said = " ".join(text(out / f"{name}.{side}").split())
        print(f"  {name}: {said[:300]}")
        if status.get(side) != str(wanted):
            fail(f"{name}: the {side} ended with {status.get(side)}, not {wanted}: {said}")
        if not re.search(pattern, said):
            fail(f"{name}: the {side} does not say /{pattern}/: {said}")
        start, end = text(out / f"{name}.start"), text(out / f"{name}.end")
        if start and end and float(end) - float(start) > limit:
            fail(f"{name}: ended {float(end) - float(start):.1f} s after the fault, not within {limit}")
        elif start:
            print(f"    {float(end) - float(start):.2f} s after the fault")
    smaller = ours(out, "mtu-smaller")
    if smaller.get("mtu") != 1024:
        fail(f"mtu-smaller: the MTU in use is {smaller.get('mtu')}, not 1024")
    if (lowered := ours(out, "mtu-lowered").get("mtu")) != 1024:
        fail(f"mtu-lowered: the MTU in use is {lowered}, not 1024")
    ours(out, "well-again")


def topology_check(out, exact):
    failures.extend(topology.judge(out))


CHECKS = {"figures": figures_check, "shaped": shaped_check, "faults": faults_check, "hosts": hosts_check, "topology": topology_check}


def main():
    out, mode = pathlib.Path(sys.argv[1]), sys.argv[2]
    for check in sys.argv[3:]:
        print(f"{check}:")
        if re.search(rf"^guest: {check} failed", text(out / "console"), re.M):
            fail(f"{check}: the guest could not carry it out: {text(out / 'log')[-400:]}")
        CHECKS[check](out / check, mode == "icount")
    for failure in failures:
        print("FAILED", failure)
    print(f"rdma ({mode}): {len(failures)} wrong; {figures} figures compared in {len(sys.argv) - 3} checks")
    return 1 if failures else 0


sys.exit(main())
