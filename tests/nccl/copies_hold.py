"""copies_hold.py FILE SCENARIO RANKS BYTES: do the records of h2d, d2h, d2d and p2p follow the machine's model?

The figures are those of tests/fake/machines/*.machine, written down once more: a copy lasts alpha + bytes / rate, a
kernel 2 us + what it moves at 92 % of 2 x clock x width."""
import json
import sys

path, scenario, ranks, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
lines = [json.loads(line) for line in open(path)]
records = [line for line in lines if line["kind"] == "record"]
findings = [line for line in lines if line["kind"] == "finding"]
bad = []


def check(condition, text):
    if not condition:
        bad.append(text)


def us(alpha, rate):
    return lambda count: alpha + count / rate / 1e3  # GB/s: a thousand bytes a us


HBM = {"hgx": 2 * 2.619 * 640, "geforce": 2 * 10.501 * 48}
MODEL = {  # of (case, lane, collective)
    "hgx": {"h2d": us(8, 55), "d2h": us(8, 53), "ce": us(4, 1350), "p2p": us(6, 390), "staged": us(25, 24),
            "peer": 390, "pcie": 63.0154, "nvlink": 18 * 26.562},
    "pcie": {"h2d": us(8, 55), "p2p": us(9, 50), "staged": us(25, 24), "peer": 50, "pcie": 63.0154,
             "nvlink": 63.0154},
    "geforce": {"ce": us(4, 440), "staged": us(20, 12), "pcie": 31.5077},
    "gen1": {"h2d": us(8, 55), "d2h": us(8, 53), "p2p": us(6, 390), "staged": us(25, 24), "peer": 390,
             "pcie": 63.0154, "nvlink": 18 * 26.562},
    "deadlink": {"p2p": us(6, 390), "staged": us(25, 24), "peer": 390, "pcie": 63.0154, "nvlink": 18 * 26.562},
}
MODEL["slow"] = MODEL["hidden"] = MODEL["small"] = MODEL["hgx"]
model = MODEL[scenario]


def expected_us(r):
    case, lane, count = r["case"], r["lane"], r["bytes"]
    a, b = r.get("peer_a"), r.get("peer_b")
    if case in ("h2d", "d2h"):
        if scenario == "gen1" and a == 2:
            return us(10, 1.7)(count)
        if r["ranks"] > 1 and scenario == "pcie":
            return us(8, 27.5)(count)
        return model[case](count)
    if case == "d2d":
        memory = 0.92 * HBM.get(scenario, HBM["hgx"])
        if lane == "sm":
            return us(2, memory)(count * (2 if r["collective"] == "copy" else 1))
        return us(4, 1215)(count) if scenario == "slow" and a == 1 else model["ce"](count)
    up = 16 / 18 if scenario == "deadlink" and 3 in (a, b) else 1
    if lane == "staged":
        return us(30, 1.6)(count) if scenario == "gen1" and 2 in (a, b) else model["staged"](count)
    if lane == "sm":
        return us(2, model["peer"] * up)(count)
    alpha = model["p2p"](0)
    return alpha + (model["p2p"](count) - alpha) / up


def ceiling(r):
    case, a, b = r["case"], r.get("peer_a"), r.get("peer_b")
    if r["collective"] == "latency":
        return None
    if case == "d2d":
        return HBM.get(scenario, HBM["hgx"]) / (2 if r["collective"] == "copy" else 1)
    if case in ("h2d", "d2h") or r["lane"] == "staged":
        if scenario == "gen1" and 2 in (a, b):
            return 2.0 if a == 2 else 31.5077  # the other one's generation is not known under load
        return model["pcie"]
    return model["nvlink"] * (16 / 18 if scenario == "deadlink" and 3 in (a, b) else 1)


seen = set()
for r in records:
    what = (r["case"], r["collective"], r["lane"], r["ranks"], r.get("peer_a"), r.get("peer_b"), r["bytes"])
    check(what not in seen, f"{what}: twice")
    seen.add(what)
    check(r["simulated"] is True and r["wrong_elements"] == 0, f"{what}: not verified, or not marked simulated")
    check(r["hosts"] == 1 and r["dtype"] == "int8" and r["op"] == "none", f"{what}: identity {r}")
    median = r["time_ns"]["median"] / 1e3
    check(abs(median / expected_us(r) - 1) < 1e-3, f"{what}: {median} us, expected {expected_us(r)}")
    rate = r["bytes"] / r["time_ns"]["median"]
    for key in ("algbw_bytes_per_s", "busbw_bytes_per_s"):
        check(abs(r[key] / 1e9 / rate - 1) < 1e-6, f"{what}: {key} {r[key]}")
    wanted, found = ceiling(r), r.get("ceiling_bytes_per_s")
    check((found is None) == (wanted is None) and (wanted is None or abs(found / 1e9 / wanted - 1) < 1e-3),
          f"{what}: ceiling {found}, expected {wanted} GB/s")
    check(r["slowest_rank"] == r["peer_a"], f"{what}: slowest rank {r['slowest_rank']}")
    check(not [w for w in r["warnings"] if w["code"] != "far-below-ceiling"], f"{what}: {r['warnings']}")

pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
expected = set()
cases = {r["case"] for r in records}
for case in cases & {"h2d", "d2h"}:
    for rank in range(ranks):
        expected |= {(case, "latency", "ce", 1, rank, None, 8), (case, "copy", "ce", 1, rank, None, size),
                     (case, "copy_both", "ce", 1, rank, None, size), (case, "copy", "ce", ranks, rank, None, size)}
        if size > 65536:
            expected.add((case, "copy", "ce", 1, rank, None, 65536))
if "d2d" in cases:
    d2d = size if scenario == "slow" else 4 * size
    for rank in range(ranks):
        expected |= {("d2d", "copy", "ce", ranks, rank, None, d2d), ("d2d", "copy", "sm", ranks, rank, None, d2d),
                     ("d2d", "read", "sm", ranks, rank, None, d2d), ("d2d", "write", "sm", ranks, rank, None, d2d)}
if "p2p" in cases:
    for a, b in pairs:
        expected.add(("p2p", "write", "staged", 2, a, b, size))
        if scenario == "geforce":
            continue
        for lane in ("ce", "sm"):
            expected |= {("p2p", "latency", lane, 2, a, b, 8), ("p2p", "write", lane, 2, a, b, size),
                         ("p2p", "read", lane, 2, a, b, size)}
            if a < b:
                expected.add(("p2p", "copy_both", lane, 2, a, b, size))
if scenario != "small":
    check(seen == expected, f"records: missing {sorted(map(str, expected - seen))[:4]}, "
                            f"too many {sorted(map(str, seen - expected))[:4]}")

FINDINGS = {  # code, where, words of the text
    "hgx": [],
    "pcie": [("shared-uplink", "", "when all 4 GPUs copy at once"), ],
    "geforce": [("p2p-off", "", "any of the 2 GPUs: copies go through host memory at")],
    "gen1": [("pcie-link", "rank 2 on ", "Gen1 x8 while data is copied, GPU and slot can do Gen5 x16")],
    "deadlink": [("p2p-slow", "rank 3 on ", "16 of its 18 NVLinks are up")],
    "slow": [("gpu-slow", "rank 1 on ", "copies by the copy engines")],
    "hidden": [("p2p-hidden", "", "CUDA_VISIBLE_DEVICES shows each rank its own")],
    "small": [("size-reduced", "rank 1 on ", "not 2 MiB"), ("size-reduced", "rank 1 on ", "not 2 MiB")],
}
told = [f for f in findings if f["code"] not in ("binding-shared", "cpus-shared")]
for code, where, words in FINDINGS[scenario]:
    check([f for f in told if f["code"] == code and f["where"].startswith(where) and words in f["text"]],
          f"no finding {code} of {where or 'the host'} with \"{words}\"")
check(len(told) == len(FINDINGS[scenario]), f"findings: {[(f['code'], f['where'], f['text']) for f in told]}")
if scenario == "geforce":
    check(told and told[0]["severity"] == "info", "p2p-off on GeForce cards is no warning")
if bad:
    sys.exit("\n".join([f"{scenario}: {len(bad)} of {len(records)} records or findings are not as expected"] + bad[:8]))
