#!/usr/bin/env python3
"""The fields of an MPIJob, from the operator's own definition:

    mpijob_schema.py mpi-operator/manifests/base/kubeflow.org_mpijobs.yaml >mpijob.schema.json

Names and types of v2beta1 alone. A field that is not there is refused, as kubectl does; what lies below a part of the
pod that no example uses is not looked at."""
import json
import sys

import yaml

# Below template.spec: these are looked into.
POD = {
    "affinity": {"podAntiAffinity"},
    "containers": {"args", "command", "env", "image", "imagePullPolicy", "name", "ports", "resources", "securityContext",
                   "volumeMounts", "workingDir"},
    "imagePullSecrets": None,
    "hostNetwork": None,
    "dnsPolicy": None,
    "nodeSelector": None,
    "tolerations": None,
    "volumes": {"name", "emptyDir", "hostPath", "persistentVolumeClaim", "configMap", "nfs"},
}
KEPT = {"type", "enum", "pattern", "required", "format", "anyOf", "minimum", "maximum"}


def names_and_types(node):
    kept = {key: node[key] for key in KEPT if key in node}
    if "properties" in node:
        kept["properties"] = {name: names_and_types(value) for name, value in node["properties"].items()}
        kept["additionalProperties"] = False
    if isinstance(node.get("additionalProperties"), dict):
        kept["additionalProperties"] = names_and_types(node["additionalProperties"])
    if "items" in node:
        kept["items"] = names_and_types(node["items"])
    return kept


def close(properties, looked_into):
    for name in properties:
        if name not in looked_into:
            properties[name] = {}


def main(path):
    with open(path, encoding="utf-8") as file:
        versions = yaml.safe_load(file)["spec"]["versions"]
    schema = names_and_types(next(v for v in versions if v["name"] == "v2beta1")["schema"]["openAPIV3Schema"])
    metadata = {"type": "object", "required": ["name"]}
    schema["properties"]["metadata"] = metadata
    schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
    schema["properties"]["apiVersion"] = {"enum": ["kubeflow.org/v2beta1"]}
    schema["properties"]["kind"] = {"enum": ["MPIJob"]}
    del schema["properties"]["status"]
    replica = schema["properties"]["spec"]["properties"]["mpiReplicaSpecs"]["additionalProperties"]
    replica["properties"]["template"]["properties"]["metadata"] = {"type": "object"}
    pod = replica["properties"]["template"]["properties"]["spec"]["properties"]
    close(pod, POD)
    close(pod["containers"]["items"]["properties"], POD["containers"])
    close(pod["volumes"]["items"]["properties"], POD["volumes"])
    close(pod["affinity"]["properties"], POD["affinity"])
    json.dump(schema, sys.stdout, indent=1, sort_keys=True)
    print()


main(sys.argv[1])
