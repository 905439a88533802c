"""Drives the program: what it accepts, and batches of predictions.

    program = Program("build/nodeworth")
    answers = program.predict(requests)     # one dict a request, in order

An answer has "error" where there is no prediction.
"""

import csv
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Broken(Exception):
    """The program did not do what its interface says."""


def find_program():
    for name in (os.environ.get("NODEWORTH"), "build/nodeworth"):
        path = name and os.path.join(ROOT, name)
        if path and os.access(path, os.X_OK):
            return path
    raise SystemExit("ci/validate: no build/nodeworth; build it first (cmake --preset release && cmake --build build), "
                     "or name it with --program")


class Accepted:
    """What the program has: profiles, strategies, optimizers, GPU peaks."""

    def __init__(self, names, catalogue):
        self.names = names  # {"strategies": [...], …}
        self.catalogue = catalogue  # GPU name → row of topo/gpus.csv

    def pick(self, kind, candidates):
        """The first candidate that the program has; None."""
        have = self.names.get(kind) or []
        return next((name for name in candidates if name in have), None)

    def peak(self, gpu, precision):
        """Dense FLOP/s, 0 where unknown."""
        row = self.catalogue.get(gpu, {})
        for column in {"fp8": ("fp8",), "bf16": ("bf16", "fp16"), "fp16": ("fp16", "bf16")}.get(precision, (precision,)):
            text = row.get(f"{column}_dense_tflops")
            if text:
                return float(text) * 1e12
        return 0


def catalogue():
    with open(os.path.join(ROOT, "topo", "gpus.csv"), encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(line for line in file if not line.startswith("#"))}


class Program:
    def __init__(self, path=None):
        self.path = path or find_program()
        self.died = 0

    def run(self, arguments, text=None):
        return subprocess.run([self.path] + arguments, input=text, capture_output=True, text=True, check=False)

    def list(self, kind):
        done = self.run(["list", kind, "--json"])
        if done.returncode:
            raise Broken(f"list {kind} --json: exit code {done.returncode}: {(done.stderr.strip() or 'nothing said')[-200:]}")
        try:
            value = json.loads(done.stdout)
        except ValueError as reason:
            raise Broken(f"list {kind} --json: {reason}") from None
        items = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value.get(kind) if isinstance(value, dict) else None
        if not isinstance(items, list) or not items:
            raise Broken(f"list {kind} --json: no list of {kind}")
        return items

    def accepted(self):
        names = {}
        for kind in ("strategies", "optimizers", "frameworks"):
            names[kind] = [item["name"] if isinstance(item, dict) else item for item in self.list(kind)]
        names["models"] = {item["name"]: item.get("about", "") for item in self.list("models") if isinstance(item, dict)}
        return Accepted(names, catalogue())

    def constants(self):
        """[{key, value, unit, text, source}] of the constants that `--assume` takes."""
        return self.list("constants")

    def answer(self, requests):
        """Of a program that dies on one of them: that one is found by halves, and has an error."""
        if not requests:
            return []
        done = self.run(["predict", "--batch", "-"], "".join(json.dumps(request) + "\n" for request in requests))
        lines = done.stdout.splitlines()
        if len(lines) == len(requests):
            return [json.loads(line) for line in lines]
        said = (done.stderr.strip() or "nothing said")[-200:]
        if done.returncode > 0:
            raise Broken(f"predict --batch answered {len(lines)} of {len(requests)} lines, exit code {done.returncode}: {said}")
        if len(requests) == 1:
            self.died += 1
            if self.died > 40:
                raise Broken(f"predict --batch died of signal {-done.returncode} on more than 40 lines: {said}")
            return [{"id": requests[0].get("id"), "error": f"died of signal {-done.returncode}"}]
        half = len(requests) // 2
        return self.answer(requests[:half]) + self.answer(requests[half:])

    def predict(self, requests):
        """Answers in order; each has the id of its request, but for a line that the program could not read (a number beyond all bounds)."""
        answers = self.answer(requests)
        for request, answer in zip(requests, answers):
            if answer.get("id") != request.get("id") and not ("id" not in answer and answer.get("error")):
                raise Broken(f"predict --batch: the answer to {request.get('id')} has id {answer.get('id')}")
        return answers
