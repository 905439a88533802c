#!/usr/bin/env python3
"""serving.py NODEWORTH [--rows]: `nodeworth infer` against published measurements (published/serving.csv), by source and metric."""
import csv
import json
import math
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


# The range of `infer`: told over 1.5 to told times 1.1 (NW_INFER_SLOWER, NW_INFER_FASTER of model/infer.h),
# chosen on these very rows.
LEAST, MOST = 1 / 1.1, 1.5


def predict(nodeworth, row):
    """The row's metric as told, or a text that says why there is none."""
    line = [nodeworth, "infer", "--model", row["model"], "--format", row["format"], "--cache", row["cache"], "--prompt", row["prompt"],
            "--output", row["output"], "--sequences", "2048" if row["batch"] == "max" else row["batch"], "--tp", row["tp"], "--pp", "1", "--json", row["tp"] + "x" + row["gpu"]]
    answer = subprocess.run(line, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return answer.stderr.strip()
    server = json.loads(answer.stdout)["servers"][0]
    if not server["fits"]:
        return "does not fit"
    if row["metric"] == "first_ms":
        return server["first_token_ns"] / 1e6
    if row["metric"] == "alone_tokens_per_s":
        return 1e9 / server["alone"]["total_ns"]
    if row["batch"] != "max" and server["sequences"] < float(row["batch"]) * 0.999:
        return f"only {server['sequences']:.0f} sequences fit"
    return server["tokens_per_s"]


def main():
    nodeworth = sys.argv[1]
    with open(os.path.join(HERE, "published", "serving.csv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    groups = {}
    for row in rows:
        told = predict(nodeworth, row)
        if isinstance(told, str):
            print("left out:", row["source"], row["model"], row["gpu"], "batch", row["batch"], row["prompt"], row["output"], told)
            continue
        ratio = told / float(row["value"])
        speed = 1 / ratio if row["metric"] == "first_ms" else ratio
        groups.setdefault((row["source"], row["metric"]), []).append(speed)
        groups.setdefault(("total", ""), []).append(speed)
        if "--rows" in sys.argv:
            print(f'{speed:6.2f} {row["source"]:12} {row["model"]:12} {row["tp"]}x{row["gpu"]:16} {row["format"]} b{row["batch"]:5} '
                  f'{row["prompt"]:>5} {row["output"]:>5} {row["metric"]:18} {row["value"]:>8} told {told:.1f}')
    for (source, metric), speeds in groups.items():
        errors = sorted(abs(s - 1) for s in speeds)
        inside = sum(LEAST <= s <= MOST for s in speeds) / len(speeds)
        bias = math.exp(statistics.mean(math.log(s) for s in speeds)) - 1
        print(f"{source:13} {metric:19} {len(speeds):3} rows: median error {100 * statistics.median(errors):4.0f} %, "
              f"p90 {100 * errors[math.ceil(0.9 * len(errors)) - 1]:4.0f} %, told speed {100 * bias:+4.0f} %, in range {100 * inside:3.0f} %")


main()
