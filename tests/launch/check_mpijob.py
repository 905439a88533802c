#!/usr/bin/env python3
"""check_mpijob.py MANIFEST SCHEMA [launcher|worker]: is it an MPIJob that the operator takes? With a third word: what
that replica's container runs, a word a line."""
import copy
import json
import sys

import jsonschema
import yaml


def check(job, schema):
    jsonschema.validate(job, schema)
    # What the operator itself wants (pkg/apis/kubeflow/validation).
    spec = job["spec"]
    replicas = spec["mpiReplicaSpecs"]
    if set(replicas) != {"Launcher", "Worker"} or replicas["Launcher"]["replicas"] != 1:
        raise ValueError("one Launcher and a Worker are wanted")
    for name, replica in replicas.items():
        pod = replica["template"]["spec"]
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        mounted = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", [])}
        if mounted - volumes:
            raise ValueError(f"{name} mounts {mounted - volumes}, which is no volume of its pod")
    command = launcher(job)
    ranks = int(command[command.index("-np") + 1])
    if ranks != spec["slotsPerWorker"] * replicas["Worker"]["replicas"]:
        raise ValueError(f"mpirun starts {ranks} ranks, the workers take {spec['slotsPerWorker']} each")


def launcher(job):
    container = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    return container["command"] + container.get("args", [])


def refused(job, schema):
    try:
        check(job, schema)
    except (ValueError, jsonschema.ValidationError):
        return True
    return False


def spoil(job):
    """The same manifest with one mistake each."""
    worker = ("spec", "mpiReplicaSpecs", "Worker")
    container = worker + ("template", "spec", "containers", 0)
    for path, value in (
        (("apiVersion",), "kubeflow.org/v1"),
        (("spec", "slotPerWorker"), 8),
        (("spec", "slotsPerWorker"), "8"),
        (("spec", "slotsPerWorker"), 4),
        (worker + ("replica",), 2),
        (worker + ("replicas",), 3),
        (container + ("volumeMount",), []),
        (container + ("command",), "sshd"),
        (container + ("resources", "limits"), [8]),
        (worker + ("template", "spec", "volumes"), []),
    ):
        bad = copy.deepcopy(job)
        place = bad
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        yield path, value, bad


def main(manifest, schema_file, replica=None):
    with open(manifest, encoding="utf-8") as file:
        job = yaml.safe_load(file)
    with open(schema_file, encoding="utf-8") as file:
        schema = json.load(file)
    check(job, schema)
    for path, value, bad in spoil(job):
        if not refused(bad, schema):
            sys.exit(f"{manifest}: {'.'.join(map(str, path))} = {value!r} is taken")
    if replica == "launcher":
        print("\n".join(launcher(job)))
    elif replica == "worker":
        print("\n".join(job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["command"]))


main(*sys.argv[1:])
