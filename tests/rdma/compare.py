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
        found = ours(out, mine).get(key, math.nan)
        if exact:
            close(f"{mine} against {theirs}", found, perftest(out, theirs) * factor, 0.02, unit)
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


def bench(out, name, hosts, status, where, rc="NW_OK"):
    """What a run of the program left, and its records: over so many hosts, right data, ended so; `where`: least bytes of each wire."""
    found = records(out / f"{name}.jsonl")
    rows = [record for record in found if record.get("kind") == "record"]
    context = next((record for record in found if record.get("kind") == "context"), {})
    ended = text(out / f"{name}.status").strip()
    if ended != str(status) or not rows or context.get("hosts") != hosts:
        fail(f"{name}: ended with {ended}, not {status}; {context.get('hosts')} hosts, {len(rows)} records: {text(out / f'{name}.err')[-600:]}")
    for row in rows:
        if row["rc"] != rc or (rc == "NW_OK" and row.get("wrong_elements") != 0):
            fail(f"{name}: {row['case']} {row['collective']} {row.get('nic_a')}: {row['rc']}, wrong_elements {row.get('wrong_elements')}")
    counts = [float(line) for line in text(out / f"{name}.wires").split()]
    crossed = [sum(counts[i + 4 : i + 6]) - sum(counts[i : i + 2]) for i in (0, 2)] if len(counts) == 8 else [0, 0]
    print(f"  {name}: {len(rows)} records; over wire A {crossed[0] / 1e6:.0f} MB, over B {crossed[1] / 1e6:.0f} MB")
    for wire, least in enumerate(where):
        if crossed[wire] < least:
            fail(f"{name}: {crossed[wire] / 1e6:.1f} MB crossed wire {'AB'[wire]}, not {least / 1e6:.0f} and more")
    return found, rows


def rates(rows, case, what, wanted_count, ends=None):
    """(who, MB/s) of the records of a case and what it measured."""
    found = [
        (f"{case} {what} {row['nic_a']} to {row['nic_b']}", row["algbw_bytes_per_s"] / 1e6)
        for row in rows
        if row["case"] == case and row["collective"] == what and (ends is None or {row["nic_a"], row["nic_b"]} == ends)
    ]
    if len(found) != wanted_count:
        fail(f"{case} {what}: {len(found)} records, not {wanted_count}")
    return found


def hosts_check(out, exact):
    """The program over several hosts, by mpirun: MPI over UCX; then each of its RDMA cases on wires of known rates."""
    _, rows = bench(out, "ucx", 2, 0, (1e6, 0))
    if {(row["case"], row["collective"]) for row in rows} != {("coll", "all_reduce"), ("coll", "sendrecv")}:
        fail(f"ucx: records of {sorted({row['collective'] for row in rows})}")
    if not any(row["ranks"] == 4 for row in rows):
        fail("ucx: no record of four ranks")

    _, rows = bench(out, "nic", 2, 0, (20e6, 20e6))
    unshaped, shaped = {"rxe0/1", "rxe1/1"}, {"rxe2/1", "rxe3/1"}
    for what, count, theirs, tolerance in (("write", 2, "ib_write_bw", 0.02), ("read", 1, "ib_read_bw", 0.04)):
        for who, found in rates(rows, "nic", what, count, unshaped):
            close(f"{who} against {theirs}", found, perftest(out.parent / "figures", theirs) / 1e6, tolerance, "MB/s")
    wire = 400e6 / 8 * PAYLOAD / 1e6
    for what, count in (("write", 2), ("read", 1), ("send", 1)):
        for who, found in rates(rows, "nic", what, count, shaped):
            close(f"{who}, of 400 Mbit/s", found, wire, 0.02, "MB/s")
    for who, found in rates(rows, "nic", "write_both", 1, shaped):
        print(f"  {who}: {found:.4g} MB/s each way")
        if not 0.75 * wire < found < 1.02 * wire:  # acknowledgements wait behind the other way's data; the ways do not share
            fail(f"{who}: {found:.4g} MB/s each way of a wire for {wire:.4g}")

    _, rows = bench(out, "gid", 2, 1, (0, 0), "NW_EUSAGE")
    start, end = (float(time) for time in text(out / "gid.times").split())
    if end - start > 10:  # of which mpirun takes 4 to end the other ranks
        fail(f"gid: ended after {end - start:.1f} s, not within 10")
    said = " ".join(warning["text"] for row in rows for warning in row.get("warnings", ()))
    for port in ("host1 rxe0/1", "host1 rxe2/1"):
        if not re.search(port + " has no GID of index 9; its table: 0 = fe80::", said):
            fail(f"gid: does not say that {port} has no GID of index 9: {said}")

    _, rows = bench(out, "busy", 3, 0, (20e6, 20e6))
    wire = 200e6 / 8 * PAYLOAD / 1e6
    for case, what, wanted in (
        ("rail", "write", {"host1 rxe0/1 host2 rxe1/1": wire, "host1 rxe2/1 host2 rxe3/1": wire, "host1 2 NICs host2 2 NICs": 2 * wire}),
        ("bisect", "write", {"host1 2 NICs host3 2 NICs": 2 * wire}),
        # host2 and host3, which share a card, over wire A: each has half of it. Into rxe1 only one of the two uses the wire.
        ("incast", "write", {" 2 NICs host1 rxe0/1": wire, " 2 NICs host2 rxe1/1": None, " 2 NICs host3 rxe1/1": None}),
    ):
        found = {" ".join(row.get(key, "") for key in ("host_a", "nic_a", "host_b", "nic_b")): row for row in rows if (row["case"], row["collective"]) == (case, what)}
        if found.keys() != wanted.keys():
            fail(f"{case} {what}: records of {sorted(found)}")
        for who in found.keys() & wanted.keys():
            rate = found[who]["algbw_bytes_per_s"] / 1e6
            if wanted[who] is None:
                print(f"  {case} {what} {who}: {rate:.4g} MB/s")
            else:  # several at once: they begin up to a slice of the processor apart
                close(f"{case} {what} {who}, of 200 Mbit/s", rate, wanted[who], 0.02 if "2 NICs" not in who else 0.04, "MB/s")

    found, rows = bench(out, "loopback", 1, 0, (0, 0))
    if [row["collective"] for row in rows] != ["write_latency", "write", "send"]:
        fail(f"loopback: records of {[row['collective'] for row in rows]}")


# Of each fault: on the client, then on the server, the exit status, what it must say, and within how many seconds of the
# guest's time after the fault it must have ended, from and to.
TOLD = (1, r"NW_EPEER: the other side has failed")  # what the other one says where it alone sees the fault
GONE = r"no acknowledgement in spite of all retries .*the other side is gone"
SILENT = r"nothing has moved for 3(\.\d+)? ?s while .*the other side has stopped"
DOWN = r"RDMA send from node1 {0} .*the port went down"
RETRIED = (0.4, 2)  # 67 ms to an acknowledgement, and six retries; a NIC may take four times as long
USUAL = (1.8, 7.6)  # the same of 0.27 s, which is what the program asks for by itself
WAITED = (3, 3.6)  # -D 3: the deadline without any completion
SOON = (0, 1)
# (A side that fails tells the other one, and so ends when that does.)
FAULTS = (
    ("gid-absent", SOON, (2, r"rxe0/1 has no GID of index 9; its table: 0 = fe80::.*; 1 = 192\.0\.2\.1 \(RoCE v2, IPv4\)"), SOON, TOLD),
    ("gid-kind", SOON, (2, r"GID index 0 of .*rxe0/1 .*and 1 of .*rxe1/1 .*are of no one kind"), SOON, (2, r"GID index 1 of .*rxe1/1 .*and 0 of .*rxe0/1 .*are of no one kind")),
    ("mtu-wished", SOON, (2, r"rxe0/1 cannot do an RDMA MTU of 4096: 1024 is in force there"), SOON, TOLD),
    ("mtu-of-switch", RETRIED, (1, r"no acknowledgement in spite of all retries .*MTU larger than the switches pass"), RETRIED, TOLD),
    ("memlock", SOON, (1, r"rxe0/1: registering .* was refused .*: a process may lock 64 KiB here\. Raise it: ulimit -l"), SOON, TOLD),
    ("peer-killed", RETRIED, (1, rf"from node1 rxe0/1 .* to node1 rxe1/1 .*{GONE}"), SOON, (137, r"^$")),
    ("peer-killed-send", RETRIED, (1, GONE), SOON, (137, r"^$")),
    ("sender-killed", SOON, (137, r"^$"), WAITED, (1, rf"RDMA send from node1 rxe1/1 .*{SILENT}")),
    ("lost", USUAL, (1, r"transport retry counter exceeded.*packets do not arrive"), USUAL, TOLD),
    ("lost-send", WAITED, (1, r"transport retry counter exceeded.*packets do not arrive"), WAITED, (1, SILENT)),
    ("lost-for-ever", WAITED, (1, SILENT), WAITED, TOLD),
    ("port-down", SOON, (1, DOWN.format("rxe0/1")), SOON, (1, DOWN.format("rxe1/1"))),
    ("port-is-down", SOON, (1, r"RDMA port rxe0/1 is down: "), SOON, (1, r"RDMA port rxe1/1 is down: ")),
)


def faults_check(out, exact):
    for name, *sides in FAULTS:
        status = text(out / f"{name}.status").split()
        times = [float(time) for time in text(out / f"{name}.times").split()]
        if len(status) != 2 or len(times) != 3:
            fail(f"{name}: was not carried out")
            continue
        begin = float(text(out / f"{name}.fault") or times[0])
        for i, side in enumerate(("client", "server")):
            (soonest, latest), (wanted, pattern) = sides[2 * i : 2 * i + 2]
            said, after = " ".join(text(out / f"{name}.{side}").split()), times[1 + i] - begin
            print(f"  {name}, {side}: {after:.2f} s: {said[:200]}")
            if status[i] != str(wanted):
                fail(f"{name}: the {side} ended with {status[i]}, not {wanted}: {said}")
            if not re.search(pattern, said):
                fail(f"{name}: the {side} does not say /{pattern}/: {said}")
            if not soonest <= after <= latest:
                fail(f"{name}: the {side} ended {after:.2f} s after the fault, not within {soonest} to {latest}")
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
