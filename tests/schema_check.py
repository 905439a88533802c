#!/usr/bin/env python3
"""Hold results files against results/schema/record-1.json.

    schema_check.py SCHEMA FILE.jsonl...             check files
    schema_check.py SCHEMA --program PROGRAM LOG...  import each log, then check what was written
    schema_check.py SCHEMA --run COMMAND...          run it, "{}" standing for a file, then check that file
    schema_check.py SCHEMA --self-test               the schema refuses what it must

Besides the schema, every key of a record or context must be one that the schema names: a key that
is written but not described is a fault. Exit 0 all valid, 1 not, 77 jsonschema is not installed.
"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)

RECORD = {
    "schema": 1, "kind": "record", "case": "coll", "collective": "all_reduce", "lane": "host",
    "dtype": "float", "op": "sum", "ranks": 2, "bytes": 8, "in_place": False,
    "time_ns": {"median": 1.5, "count": 1}, "samples_ns": [1.5], "warnings": [], "simulated": False,
}
# What must be refused: a key and the value it is set to (None: taken out).
FAULTS = [
    ("simulated", None), ("simulated", 0), ("schema", 2), ("kind", "sample"), ("bytes", -1),
    ("bytes", 1.5), ("ranks", 0), ("in_place", "no"), ("time_ns", {"count": 1}),
    ("time_ns", {"median": -1}), ("time_ns", {"median": 1, "avg": 1}), ("time_ns", None),
    ("samples_ns", ["1"]), ("slowest_share", 2), ("wrong_elements", -1), ("stop", "tired"),
    ("warnings", [{"severity": "bad", "code": "", "where": "", "text": ""}]),
]


def check_file(validator, path):
    """Number of faults in one results file."""
    faults = 0
    known = {kind: set(validator.schema["$defs"][name]["properties"])
             for kind, name in [("record", "record"), ("context", "context")]}
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        value = json.loads(line)
        kind = value.get("kind")
        # Against the line's own kind: "oneOf" alone would only say that none of the four fits.
        name = {"finding": "finding_line"}.get(kind, kind)
        rule = {"$ref": f"#/$defs/{name}", "$defs": validator.schema["$defs"]}
        errors = list(type(validator)(rule).iter_errors(value))
        if not errors and not validator.is_valid(value):
            errors = list(validator.iter_errors(value))
        for error in errors:
            print(f"{path}:{number}: {error.json_path}: {error.message}")
        unknown = set(value) - known.get(kind, set(value))
        for key in unknown:
            print(f"{path}:{number}: key \"{key}\" is not in the schema")
        faults += len(errors) + len(unknown)
    if not lines:
        print(f"{path}: is empty")
        faults += 1
    return faults


def self_test(validator):
    """Number of faults of the schema itself."""
    faults = 0
    if not validator.is_valid(RECORD):
        print("a good record is refused")
        faults += 1
    for key, value in FAULTS:
        bad = copy.deepcopy(RECORD)
        if value is None:
            del bad[key]
        else:
            bad[key] = value
        if validator.is_valid(bad):
            print(f"a record with {key} = {json.dumps(value)} is accepted")
            faults += 1
    return faults


def import_and_check(validator, program, logs):
    faults = 0
    checked = 0
    with tempfile.TemporaryDirectory() as folder:
        for log in logs:
            out = pathlib.Path(folder) / "results.jsonl"
            out.unlink(missing_ok=True)
            run = subprocess.run([program, "import", log, "--out", str(out)], capture_output=True,
                                 text=True, check=False)
            if run.returncode == 2 and not out.exists():
                continue  # no log: refused, and nothing written
            if run.returncode not in (0, 1, 3) or not out.exists():
                print(f"{log}: import ended with {run.returncode}: {run.stderr.strip()}")
                faults += 1
                continue
            faults += check_file(validator, out)
            checked += 1
    if checked == 0:
        print("no log was imported")
        faults += 1
    print(f"{checked} logs imported and checked")
    return faults


def run_and_check(validator, command):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "results.jsonl"
        run = subprocess.run([str(out) if word == "{}" else word for word in command],
                             capture_output=True, text=True, check=False, cwd=folder)
        if run.returncode != 0 or not out.exists():
            print(f"{command[0]} ended with {run.returncode}: {run.stderr.strip()}")
            return 1
        return check_file(validator, out)


def main(arguments):
    schema = json.loads(pathlib.Path(arguments[0]).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    if arguments[1] == "--self-test":
        faults = self_test(validator)
    elif arguments[1] == "--run":
        faults = run_and_check(validator, arguments[2:])
    elif arguments[1] == "--program":
        faults = import_and_check(validator, arguments[2], arguments[3:])
    else:
        faults = sum(check_file(validator, pathlib.Path(path)) for path in arguments[1:])
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
