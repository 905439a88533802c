#!/usr/bin/env python3
"""run.py [--python PYTHON] [--nodeworth PROGRAM] [--rates LIST] [--jobs LIST] [--strategies LIST] [--out FILE]: real frameworks
against what nodeworth says beforehand.

On two nodes made of network namespaces (tests/cluster/with-nodes), for each rate of their wire: nodeworth measures the wire; the
job's step alone is timed on both nodes at once, without a message; nodeworth predicts the step of both nodes together from these
two and nothing else; then PyTorch runs it. Prints a Markdown table; exit status 1 when the median error is over 10 %, one over
20 %, or `which is faster, one node or two` was wrong where the two differ by more than 10 %.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys

import jobs

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
WITH_NODES = os.path.join(ROOT, "tests", "cluster", "with-nodes")
RATES = "200mbit,1gbit,5gbit"
STRATEGIES = "ddp,zero1,fsdp"


def run(rate, command, folder):
    """Output of a command on both nodes."""
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="eth0", MASTER="10.77.0.1", OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([WITH_NODES, "2x1", rate, *map(str, command)], cwd=folder, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        sys.exit(done.stderr)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} over {rate}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def step(options, rate, job, strategy):
    text = run(rate, [options.python, os.path.join(HERE, "rank.py"), job, strategy, options.steps], options.folder)
    return json.loads(re.search(r"^\{.*\}$", text, re.M).group(0))


def measure_wire(options, rate):
    path = os.path.join(options.folder, f"wire-{rate}.jsonl")
    if os.path.exists(path):
        os.remove(path)
    run(rate, [options.nodeworth, "bench", "--collectives", "all_reduce,all_gather,reduce_scatter,broadcast", "-b", "4K", "-e",
               "64M", "-f", "4", "--budget", "1s", "-J", path], options.folder)
    return path


def predict(options, wire, job, strategy, alone_s):
    """One rank would take twice as long for the global batch. --gemm-tflops is only where the anchor starts from."""
    command = [options.nodeworth, "predict", *map(str, jobs.arguments(job, 2)), "--precision", "fp32", "--optimizer", "adam",
               "--strategy", strategy, "--framework", "pytorch", "--ranks", "2", "--nodes", "2", "--gpus-per-node", "1",
               "--gemm-tflops", "0.05", "--measured-step", f"{2 * alone_s}s", "--on", "1", "--json", wire]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["steps"][0]


def race(options):
    rows = []
    for rate in options.rates.split(","):
        wire = measure_wire(options, rate)
        for job in options.jobs.split(","):
            alone = step(options, rate, job, "alone")
            for strategy in options.strategies.split(","):
                told = predict(options, wire, job, strategy, alone["step_s"])
                real = step(options, rate, job, strategy)
                rows.append({"rate": rate, "job": job, "strategy": strategy, "alone_s": alone["step_s"], "torch": real["torch"],
                             "predicted_s": told["step_ns"] / 1e9, "low_s": told["step_low_ns"] / 1e9, "high_s": told["step_high_ns"] / 1e9,
                             "measured_s": real["step_s"], "min_s": real["min_s"], "max_s": real["max_s"],
                             "exposed_s": told["exposed_communication_ns"] / 1e9})
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def verdicts(row):
    """How many times the samples/s of one node two have: predicted, measured."""
    return 2 * row["alone_s"] / row["predicted_s"], 2 * row["alone_s"] / row["measured_s"]


def table(rows):
    print("| wire | job | strategy | alone | predicted | measured | error | two nodes give: said | were |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        said, were = verdicts(row)
        print(f"| {row['rate']} | {row['job']} | {row['strategy']} | {row['alone_s']:.3f} s | {row['predicted_s']:.3f} s "
              f"| {row['measured_s']:.3f} s | {100 * (row['predicted_s'] / row['measured_s'] - 1):+.1f} % | {said:.2f} × | {were:.2f} × |")


def judge(rows):
    errors = [abs(row["predicted_s"] / row["measured_s"] - 1) for row in rows]
    clear = [verdicts(row) for row in rows if abs(verdicts(row)[1] - 1) > 0.1]
    right = sum((said > 1) == (were > 1) for said, were in clear)
    print(f"\nPyTorch {rows[0]['torch']}, {len(rows)} steps: median error {100 * statistics.median(errors):.1f} %, worst "
          f"{100 * max(errors):.1f} %; one node or two: right in {right} of {len(clear)} that differ by more than 10 %.")
    return 0 if statistics.median(errors) <= 0.1 and max(errors) <= 0.2 and right == len(clear) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch")
    parser.add_argument("--nodeworth", default=os.path.join(ROOT, "build", "nodeworth"))
    parser.add_argument("--rates", default=RATES)
    parser.add_argument("--jobs", default=",".join(jobs.NAMES))
    parser.add_argument("--strategies", default=STRATEGIES)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "truth"), help="for what is measured")
    parser.add_argument("--rows", help="JSON lines of an earlier race: only the table")
    options = parser.parse_args()
    options.nodeworth = os.path.abspath(options.nodeworth)
    options.folder = os.path.abspath(options.folder)
    os.makedirs(options.folder, exist_ok=True)
    rows = [json.loads(line) for line in open(options.rows, encoding="utf-8")] if options.rows else race(options)
    table(rows)
    return judge(rows)


if __name__ == "__main__":
    sys.exit(main())
