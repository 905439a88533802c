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


def predict(nodeworth, row):
    """(the row's metric as told, the server), or a text that says why there is none."""
    line = [nodeworth, "infer", "--model", row["model"], "--format", row["format"], "--cache", row["cache"], "--prompt", row["prompt"],
            "--output", row["output"], "--sequences", "2048" if row["batch"] == "max" else row["batch"], "--tp", row["tp"], "--pp", "1", "--json", row["tp"] + "x" + row["gpu"]]
    answer = subprocess.run(line, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return answer.stderr.strip()
    server = json.loads(answer.stdout)["servers"][0]
    if not server["fits"]:
        return "does not fit"
    if row["metric"] == "first_ms":
        return server["first_token_ns"] / 1e6, server
    if row["metric"] == "alone_tokens_per_s":
        return 1e9 / server["alone"]["total_ns"], server
    if row["batch"] != "max" and server["sequences"] < float(row["batch"]) * 0.999:
        return f"only {server['sequences']:.0f} sequences fit"
    return server["tokens_per_s"], server


def speeds(nodeworth):
    """[(row, told, told speed over measured, whether the range holds it)], [(row, why it is left out)]. The range of the tokens a second is
    the one of every metric; it was chosen on these very rows."""
    with open(os.path.join(HERE, "published", "serving.csv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    found, left_out = [], []
    for row in rows:
        answer = predict(nodeworth, row)
        if isinstance(answer, str):
            left_out.append((row, answer))
            continue
        told, server = answer
        ratio = told / float(row["value"])
        speed = 1 / ratio if row["metric"] == "first_ms" else ratio
        least, most = server["tokens_per_s"] / server["tokens_per_s_high"], server["tokens_per_s"] / server["tokens_per_s_low"]
        found.append((row, told, speed, least <= speed <= most))
    return found, left_out


def main():
    found, left_out = speeds(sys.argv[1])
    for row, why in left_out:
        print("left out:", row["source"], row["model"], row["gpu"], "batch", row["batch"], row["prompt"], row["output"], why)
    groups = {}
    for row, told, speed, inside in found:
        groups.setdefault((row["source"], row["metric"]), []).append((speed, inside))
        groups.setdefault(("total", ""), []).append((speed, inside))
        if "--rows" in sys.argv:
            print(f'{speed:6.2f} {row["source"]:12} {row["model"]:12} {row["tp"]}x{row["gpu"]:16} {row["format"]} b{row["batch"]:5} '
                  f'{row["prompt"]:>5} {row["output"]:>5} {row["metric"]:18} {row["value"]:>8} told {told:.1f}')
    for (source, metric), members in groups.items():
        errors = sorted(abs(speed - 1) for speed, _ in members)
        bias = math.exp(statistics.mean(math.log(speed) for speed, _ in members)) - 1
        print(f"{source:13} {metric:19} {len(members):3} rows: median error {100 * statistics.median(errors):4.0f} %, "
              f"p90 {100 * errors[math.ceil(0.9 * len(errors)) - 1]:4.0f} %, told speed {100 * bias:+4.0f} %, in range {100 * statistics.mean(inside for _, inside in members):3.0f} %")


if __name__ == "__main__":
    main()
