#!/usr/bin/env python3
"""What show writes for other programs agrees with the results it was made of.

    sinks_check.py PROGRAM FILE.jsonl...

CSV: every value of every row is the JSON line's own, cells that a spreadsheet could take for a
formula are guarded, and no row is lost. OpenMetrics: read by Prometheus' own parser (skipped
without python3-prometheus-client), every sample is the record's value, one sample a series.
Exit 0 agrees, 1 not.
"""
import csv
import io
import json
import os
import subprocess
import sys
import tempfile

try:
    from prometheus_client.openmetrics import parser
except ImportError:
    parser = None
# Debian's package belongs to Debian's python3, which need not be the first on the PATH.
if parser is None and sys.executable != "/usr/bin/python3" and os.access("/usr/bin/python3", os.X_OK):
    os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv)

# family: (key of the record, of it a key, divisor)
FAMILIES = {
    "nodeworth_call_median_seconds": ("time_ns", "median", 1e9),
    "nodeworth_call_low_seconds": ("time_ns", "low", 1e9),
    "nodeworth_call_high_seconds": ("time_ns", "high", 1e9),
    "nodeworth_call_p99_seconds": ("time_ns", "p99", 1e9),
    "nodeworth_skew_seconds": ("skew_ns", None, 1e9),
    "nodeworth_busbw_bytes_per_second": ("busbw_bytes_per_s", None, 1),
    "nodeworth_algbw_bytes_per_second": ("algbw_bytes_per_s", None, 1),
    "nodeworth_ceiling_bytes_per_second": ("ceiling_bytes_per_s", None, 1),
    "nodeworth_wire_bytes_per_second": ("wire_bytes_per_s", None, 1),
    "nodeworth_matrix_product_flop_per_second": ("flop_per_s", None, 1),
    "nodeworth_rdma_messages_per_second": ("messages_per_s", None, 1),
    "nodeworth_wrong_elements": ("wrong_elements", None, 1),
}
# Host names and notes that somebody could plant.
HOSTILE = ["=cmd|' /C calc'!A0", "+1+2", "-2+3", "@SUM(A1)", "\tx", "a,b\"c\nd", "-5", "节点一"]


def fail(text):
    print(text)
    sys.exit(1)


def records_of(path):
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.strip()]
    return [line for line in lines if line["kind"] == "record"]


def show(program, path, form):
    run = subprocess.run([program, "show", path, "--format", form], capture_output=True, check=False)
    if run.returncode != 0:
        fail(f"{path}: show --format {form} ended with {run.returncode}: {run.stderr.decode()}")
    return run.stdout.decode("utf-8")


def flat(record):
    """The record's scalars under the names of the CSV's columns."""
    cells = {}
    for key, value in record.items():
        if key == "time_ns":
            cells.update({f"time_ns_{k}": v for k, v in value.items()})
        elif key == "gpu_state":
            for when, state in value.items():
                cells.update({f"gpu_state_{when}_{k}": v for k, v in state.items()})
        elif key == "warnings":
            cells["warnings"] = " ".join(warning["code"] for warning in value)
        elif key not in ("schema", "kind", "samples_ns"):
            cells[key] = value
    return cells


def same(cell, value):
    if isinstance(value, bool):
        return cell == ("true" if value else "false")
    if isinstance(value, (int, float)):
        return cell != "" and float(cell) == float(value)
    guarded = value[:1] in "=+-@\t\r" and value != "" and not is_number(value)
    return cell == ("'" + value if guarded else value)


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_csv(program, path):
    text = show(program, path, "csv")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    records = records_of(path)
    if len(rows) != len(records):
        fail(f"{path}: {len(records)} records, {len(rows)} rows of CSV")
    for number, (row, record) in enumerate(zip(rows, records)):
        cells = flat(record)
        for name, value in cells.items():
            if name not in row:
                fail(f"{path}: CSV has no column {name}")
            if not same(row[name], value):
                fail(f"{path}: record {number}: {name} is {value!r}, in CSV {row[name]!r}")
        for name, cell in row.items():
            if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not is_number(cell):
                fail(f"{path}: record {number}: {name} is an unguarded formula: {cell!r}")
    return len(rows)


def label(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).replace("\r", " ")


def check_openmetrics(program, path):
    text = show(program, path, "openmetrics")
    if not text.endswith("# EOF\n"):
        fail(f"{path}: OpenMetrics without its end")
    if parser is None:
        return 0
    seen = {}
    samples = 0
    for family in parser.text_string_to_metric_families(text):
        if family.unit and not family.name.endswith("_" + family.unit):
            fail(f"{path}: {family.name} does not end in its unit {family.unit}")
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            if key in seen:
                fail(f"{path}: two samples of {key}")
            seen[key] = sample.value
            samples += 1
    expected = {}
    identity = ["case", "collective", "lane", "features", "dtype", "op", "root", "ranks", "hosts",
                "bytes", "in_place", "peer_a", "peer_b", "host_a", "host_b", "nic_a", "nic_b",
                "memory", "streams", "piece_bytes", "m", "n", "k"]
    run = 0
    with open(path, encoding="utf-8") as file:
        for line in map(json.loads, file):
            run += line["kind"] == "context"
            if line["kind"] != "record":
                continue
            labels = {key: label(line[key]) for key in identity if line.get(key, "") != ""}
            labels["run"] = str(run)
            for name, (key, part, divisor) in FAMILIES.items():
                value = line.get(key)
                value = value.get(part) if part and value is not None else value
                if value is not None:
                    expected[(name, tuple(sorted(labels.items())))] = value / divisor
    for key, value in expected.items():
        if key not in seen:
            fail(f"{path}: no sample {key}")
        if seen[key] != value:
            fail(f"{path}: {key} is {value!r}, in OpenMetrics {seen[key]!r}")
    ours = [key for key in seen if key[0] in FAMILIES]
    if len(ours) != len(expected):
        fail(f"{path}: {len(expected)} values, {len(ours)} samples")
    return samples


def hostile_file(path, folder):
    """The first records with names that nobody should have."""
    out = f"{folder}/hostile.jsonl"
    with open(path, encoding="utf-8") as file, open(out, "w", encoding="utf-8") as to:
        number = 0
        for line in map(json.loads, file):
            if line["kind"] == "record" and number < len(HOSTILE):
                line["host_a"] = HOSTILE[number]
                line["features"] = HOSTILE[-1 - number]
                number += 1
            to.write(json.dumps(line) + "\n")
    return out


def main(arguments):
    program, paths = arguments[0], arguments[1:]
    with tempfile.TemporaryDirectory() as folder:
        for path in paths + [hostile_file(paths[0], folder)]:
            rows = check_csv(program, path)
            samples = check_openmetrics(program, path)
            print(f"{path}: {rows} rows, {samples} samples agree")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__)
        sys.exit(2)
    main(sys.argv[1:])
