#!/usr/bin/env python3
"""Holds emitted files against the tools' own parsers. Run by ci/emit in an environment that has
deepspeed, accelerate, kubeflow-training, pyyaml and jsonschema.

    validate.py FOLDER [--megatron CHECKOUT] [--mpijob-crd FILE]

FOLDER holds the files of one plan each in folders of its own. Prints a line a file; exit 1 when one is
refused or has a key that its tool does not know, when a plan has no file, when no file was read."""
import argparse
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import types

WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "16"))


def check_deepspeed(path):
    import deepspeed.runtime.config as config

    config.dist.get_world_size = lambda *a, **k: WORLD_SIZE
    config.dist.get_rank = lambda *a, **k: 0
    config.dist.is_initialized = lambda *a, **k: True
    read = config.DeepSpeedConfig(json.loads(path.read_text()))
    return f"stage {read.zero_config.stage}, batch {read.train_batch_size}"


def check_accelerate(path):
    from accelerate.commands.config.config_args import load_config_from_file

    read = load_config_from_file(str(path))
    return f"{read.distributed_type.value}, {read.num_processes} processes"


def check_shell(path):
    subprocess.run(["bash", "-n", str(path)], check=True)
    return "bash -n"


def unknown_keys(value, schema, where=""):
    """Keys that a structural schema (a Kubernetes CRD) would prune."""
    if isinstance(value, dict):
        properties, any_key = schema.get("properties"), schema.get("additionalProperties")
        for key, item in value.items():
            if properties and key in properties:
                yield from unknown_keys(item, properties[key], f"{where}.{key}")
            elif isinstance(any_key, dict):
                yield from unknown_keys(item, any_key, f"{where}.{key}")
            elif properties is not None and not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{where}.{key}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_keys(item, schema.get("items", {}), f"{where}[{index}]")


def check_mpijob(path, crd):
    import jsonschema
    import yaml

    versions = yaml.safe_load(pathlib.Path(crd).read_text())["spec"]["versions"]
    schema = next(v for v in versions if v["name"] == "v2beta1")["schema"]["openAPIV3Schema"]
    job = yaml.safe_load(path.read_text())
    jsonschema.validate(job, schema)
    unknown = list(unknown_keys(job, schema))
    if unknown:
        raise ValueError(f"unknown keys {unknown}")
    return "schema of the operator"


def check_pytorchjob(path):
    import yaml
    from kubeflow.training import ApiClient

    class Response:
        data = json.dumps(yaml.safe_load(path.read_text()))

    job = ApiClient().deserialize(Response, "KubeflowOrgV1PyTorchJob")
    return f"{len(job.spec.pytorch_replica_specs)} replica types"


def check_megatron(path, checkout):
    import typing

    import typing_extensions

    typing.override = getattr(typing, "override", typing_extensions.override)
    sys.path.insert(0, checkout)
    import torch
    from megatron.training import arguments

    # There is no GPU here; Megatron asks for its generation.
    torch.cuda.get_device_capability = lambda *a: (9, 0)
    torch.cuda.get_device_properties = lambda *a: types.SimpleNamespace(major=9, minor=0)
    os.environ["WORLD_SIZE"], os.environ["RANK"] = str(WORLD_SIZE), "0"
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"  # asked for with tp or cp before Blackwell
    own = "--tokenizer-type NullTokenizer --vocab-size 32000 --lr 1e-4 --train-iters 10 --mock-data"
    argv, sys.argv = sys.argv, ["pretrain_gpt.py", *path.read_text().split(), *own.split()]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            read = arguments.parse_args()
            arguments.validate_args(read)
    except SystemExit:
        raise ValueError("argparse refused it")
    finally:
        sys.argv = argv
    return f"parse_args and validate_args, {read.num_layers} layers, virtual {read.virtual_pipeline_model_parallel_size}"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=pathlib.Path)
    options.add_argument("--megatron")
    options.add_argument("--mpijob-crd")
    options = options.parse_args()
    checks = {
        "ds_config.json": check_deepspeed,
        "accelerate.yaml": check_accelerate,
        "torchrun.sh": check_shell,
        "job.sbatch": check_shell,
        "pytorchjob.yaml": check_pytorchjob,
    }
    if options.megatron:
        checks["megatron.args"] = lambda path: check_megatron(path, options.megatron)
    if options.mpijob_crd:
        checks["mpijob.yaml"] = lambda path: check_mpijob(path, options.mpijob_crd)
    failed = checked = 0
    plans = sorted(path for path in options.folder.glob("*") if path.is_dir())
    for plan in plans:
        if not any(path.is_file() for path in plan.iterdir()):
            failed += 1
            print(f"{plan}: REFUSED: no file")
    for path in sorted(options.folder.glob("*/*")):
        check = checks.get(path.name)
        try:
            print(f"{path}: {'ok: ' + check(path) if check else 'not checked'}")
            checked += check is not None
        except Exception as error:  # whatever the tool raises is its verdict
            failed += 1
            print(f"{path}: REFUSED: {type(error).__name__}: {str(error)[:300]}")
    print(f"{len(plans)} plans, {checked} files read, {failed} refused")
    return 1 if failed or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
