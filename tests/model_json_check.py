#!/usr/bin/env python3
"""Hold what the model's subcommands print with --json against docs/schema.md.

    model_json_check.py PROGRAM DOCS/schema.md

Every key, at whatever depth, must stand in backquotes in the part of its command (or in the parts
that it refers to), and no value may be null. A key that is written but not described is a fault.
Exit 0 all described, 1 not.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

JOB = ["--model", "llama-2-7b", "--gpu", "a100-80", "--gpus-per-node", "8", "--host-gbps", "25"]
WIRE = ["--inter-node", "20"]
PRICE = ["--price-per-node-hour", "20", "--tokens", "100B"]
QUOTE = """[gpu]
model = A100 SXM4 80GB
count = 8
[network]
nic_count = 8
nic_gbps = 200
[price]
currency = USD
per_gpu_hour = 1.5
"""
# Parts of docs/schema.md, and the commands whose keys they describe.
COMMANDS = [
    (["predict"], ["predict", *JOB, *WIRE, "--nodes", "1,2", "--json"]),
    (["predict"], ["predict", *JOB, *WIRE, "--nodes", "2", "--tp", "2", "--pp", "2", "--json"]),
    (["predict"], ["predict", *JOB, *WIRE, "--nodes", "1", "--strategy", "ddp", "--micro-batch",
                   "8", "--json"]),
    (["predict"], ["predict", *JOB, *WIRE, "--strategy", "fsdp", "--measured-step", "80s", "--on",
                   "8", "--json"]),
    (["predict"], ["predict", *JOB, *WIRE, "--lora-rank", "16", "--base", "nf4",
                   "--offload-optimizer", "cpu", "--strategy", "zero2", "--json"]),
    (["predict"], ["predict", "--model", "mixtral-8x7b", "--gpu", "h100-sxm", "--gpus-per-node",
                   "8", *WIRE, "--nodes", "8", "--ep", "8", "--json"]),
    (["predict --batch FILE", "predict"], ["predict", *JOB, *WIRE, "--batch", "BATCH"]),
    (["decide", "predict"], ["decide", *JOB, *WIRE, *PRICE, "--deadline", "60d", "--json"]),
    (["decide", "predict"], ["decide", *JOB, *WIRE, *PRICE, "--storage-write", "2",
                             "--price-per-node-month", "9000", "--json"]),
    (["decide", "predict"], ["decide", "--model", "llama-2-70b", "--gpu", "a100-80",
                             "--gpus-per-node", "8", *WIRE, "--nodes", "1,2,4", "--json"]),
    (["decide", "predict"], ["decide", "--model", "gpt2-124m", "--seq", "1024", "--candidate",
                             "one=QUOTE", "--candidate", "two=QUOTE", "--json"]),
    (["search", "predict"], ["search", *JOB, *WIRE, "--nodes", "1,2", "--json"]),
    (["infer"], ["infer", "--model", "llama-2-7b", "4xRTX-4090@0.4", "1xA100-80@2", "--json"]),
    (["list"], ["list", "--json"]),
]
BATCH = ['{"id": 1}', '{"id": [2], "nodes": "1,2"}', '{"model": "none"}',
         '{"strategy": "fsdp", "measured-step": "80s", "on": 8}']


def parts_of(text):
    """The words in backquotes of each `COMMAND --json` part."""
    parts = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        title, _, body = part.partition("\n")
        parts[title.strip("`").replace(" --json", "")] = set(re.findall(r"`([^`]+)`", body))
    return parts


def is_described(key, words):
    """As it stands, or as the pattern of a pair of words ("…_low", "healthy_…")."""
    if key in words:
        return True
    plain = re.sub(r"^(healthy|quoted|measured)_|_(low|high)(?=_ns$|$)", "", key)
    return plain in words or f"{key.split('_')[0]}_…" in words


def keys_of(value, path=""):
    """(path, key) of every key, and of every null."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield path, key
            yield from keys_of(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner, path)
    elif value is None:
        yield path, None


def check(program, parts, names, command, folder):
    """The faults of one command."""
    files = {"BATCH": folder / "batch.jsonl", "QUOTE": folder / "quote.ini"}
    files["BATCH"].write_text("\n".join(BATCH) + "\n", encoding="utf-8")
    files["QUOTE"].write_text(QUOTE, encoding="utf-8")
    words = [re.sub("BATCH|QUOTE", lambda found: str(files[found[0]]), word) for word in command]
    run = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    described = set().union(*(parts[name] for name in names))
    batch = "--batch" in command
    if run.returncode != 0:
        return {f"ended with {run.returncode}: {run.stderr.strip()}"}
    if batch:
        values = [json.loads(line) for line in run.stdout.splitlines()]
        if len(values) != len(BATCH):
            return {f"{len(values)} answers to {len(BATCH)} lines"}
        steps = [value.get("steps", [value]) for value in values]
        answered = [any(step.get("step_ns", 0) > 0 for step in several) for several in steps]
        if answered != [True, True, False, True]:  # the third names no model
            return {f"lines with a step_ns: {answered}"}
        for value in [*values, *(step for line in values for step in line.get("steps", []))]:
            value.pop("assumed", None)  # their keys are names of constants, of options
            value.pop("defaults", None)
    else:
        values = json.loads(run.stdout)
        values = [values] if command[0] != "list" else list(values.values())  # names of lists
    faults = set()
    for value in values:
        if not value:
            faults.add("answered with nothing")
        for path, key in keys_of(value):
            if key is None:
                faults.add(f"{path} is null")
            elif not is_described(key, described):
                faults.add(f"{path}/{key} is not described under {' or '.join(names)}")
    return faults


def main(arguments):
    program, text = arguments[0], pathlib.Path(arguments[1]).read_text(encoding="utf-8")
    parts = parts_of(text)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for names, command in COMMANDS:
            for fault in sorted(check(program, parts, names, command, pathlib.Path(folder))):
                print(f"{' '.join(command)}: {fault}")
                failed = True
        # The check itself can fail: without its part a command's keys are unknown.
        if not check(program, {"list": set()}, ["list"], ["list", "--json"], pathlib.Path(folder)):
            print("keys that no part describes were accepted")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
