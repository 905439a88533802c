"""gemm_hold.py WHAT RANKS SIZE < out.jsonl: the records and findings of the cases gemm and overlap against the machine
file's model. A product lasts kernel + 2n^3 / (tensor * clock / max_clock); fp8 has twice the rate, cuBLAS `cublas`
times."""
import json
import sys

what, ranks, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
lines = [json.loads(line) for line in sys.stdin]
records = [line for line in lines if line["kind"] == "record"]
findings = [f for line in lines if line["kind"] == "finding" for f in [line]]
KERNEL_US = 2
# machine: tensor rate, clock share by rank, cuBLAS factor, lanes of fp8
MODELS = {
    "hgx": (700e12, {}, 1, ["cublas"]),
    "throttled": (700e12, {5: 1200 / 1980}, 1, ["cublas"]),
    "far": (700e12, {}, 1.6, ["cublas"]),
    "ada": (200e12 * 2520 / 3105, {}, 1, ["own", "cublas"]),
    "a100": (250e12, {}, 1, []),
}
failed = 0


def need(condition, text):
    global failed
    if not condition:
        print(text)
        failed = 1


def close(found, expected, text):
    need(found is not None and abs(found - expected) <= 1e-3 * abs(expected), f"{text}: {found}, expected {expected}")


def expected_ns(model, lane, dtype, rank):
    tensor, shares, cublas, _ = model
    rate = tensor * (2 if dtype == "f8e4m3" else 1) * (cublas if lane == "cublas" else 1) * shares.get(rank, 1)
    return KERNEL_US * 1e3 + 2 * n**3 / rate * 1e9


def check_gemm(model):
    wanted = {(lane, dtype, rank) for dtype in ("bfloat16", "half") for lane in ("own", "cublas") for rank in range(ranks)}
    wanted |= {(lane, "f8e4m3", rank) for lane in model[3] for rank in range(ranks)}
    found = {(r["lane"], r["dtype"], r["peer_a"]) for r in records}
    need(found == wanted, f"records: missing {sorted(wanted - found)}, too many {sorted(found - wanted)}")
    for r in records:
        name = f"{r['lane']} {r['dtype']} rank {r['peer_a']}"
        ns = expected_ns(model, r["lane"], r["dtype"], r["peer_a"])
        close(r["time_ns"]["median"], ns, name + " time")
        close(r["flop_per_s"], 2 * n**3 / ns * 1e9, name + " rate")
        need(r["wrong_elements"] == 0 and r["simulated"] and r["count"] == n * n, name + ": not verified")
        need(r["ranks"] == ranks and r["time_ns"]["count"] >= 8, name + ": ranks, samples")
        state = r["gpu_state"]
        hot = what == "throttled" and r["peer_a"] == 5
        need(state["before"]["sm_clock_hz"] < 500e6 and state["before"]["throttle"] == 1, name + ": not idle before")
        need(state["during"]["throttle"] == (0x60 if hot else 0), name + f": throttle {state['during']}")
        if what in ("hgx", "throttled"):
            need(state["during"]["sm_clock_hz"] == (1200e6 if hot else 1980e6), name + ": clock under load")
            need(state["during"]["temperature_c"] == (88 if hot else 58), name + ": temperature under load")


def codes():
    return sorted(f["code"] for f in findings)


def only(code):
    matching = [f for f in findings if f["code"] == code]
    need(len(matching) == 1, f"{len(matching)} findings {code}")
    return matching[0] if matching else {"where": "", "text": "", "remedy": ""}


if what == "overlap":
    need(len(records) == 2, f"{len(records)} records")
    for r in records:
        name = r["collective"]
        factor = 2 * (ranks - 1) / ranks if name == "all_reduce" else (ranks - 1) / ranks
        alpha, rate = (12, 480e9) if name == "all_reduce" else (15, 360e9)
        ns = alpha * 1e3 + factor * r["bytes"] / rate * 1e9
        flop_per_s = 2 * n**3 / expected_ns(MODELS["hgx"], "own", "bfloat16", 0) * 1e9
        close(r["alone_ns"], ns, name + " alone")
        close(r["time_ns"]["median"], ns, name + " beside")  # the doubles' streams do not disturb each other
        close(r["flop_per_s"], flop_per_s, name + " product beside")
        close(r["alone_flop_per_s"], flop_per_s, name + " product alone")
        close(r["hidden_share"], 1, name + " hidden")
        need(r["wrong_elements"] == 0 and r["simulated"] and r["dtype"] == "bfloat16", name + ": not verified")
    need({r["collective"] for r in records} == {"all_reduce", "all_gather"}, "collectives")
else:
    check_gemm(MODELS[what])
    if what == "throttled":
        for code in ("throttled", "gpu-slow"):
            need(only(code)["where"].startswith("rank 5 on ") and "(gpu 5, " in only(code)["where"], code + ": names another")
        need("heat, heat, by the hardware, SM clock 1200 of 1980 MHz, 88 C" in only("throttled")["text"],
             "throttled: " + only("throttled")["text"])
    elif what == "far":
        need(codes().count("gemm-far-from-cublas") == 2, f"findings {codes()}")
    else:
        need(not {"throttled", "gpu-slow", "gemm-drift", "gemm-far-from-cublas"} & set(codes()), f"findings {codes()}")
    if what == "hgx":
        need("f8e4m3" in only("gemm-left-out")["text"], "the missing fp8 product")
sys.exit(failed)
