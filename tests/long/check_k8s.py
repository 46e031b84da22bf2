#!/usr/bin/env python3
"""Checks a manifest of `hlat launch --print k8s`: check_k8s.py FILE KIND...   (exit code 1 and a line for each problem)

Core kinds are held against the schemas that kubernetes-validate has, strictly: a field they do not know is an error. So are the pods
of the MPIJob, as if they stood alone. The MPIJob itself is not a core kind: its fields are checked by the list below, made from the types of
kubeflow.org/v2beta1 by hand. KIND... are the kinds that the file must have, in this order.
"""

import sys

import kubernetes_validate
import yaml

# Of the MPIJob: what each object may hold, what it must hold, and the values of fields that have few.
FIELDS = {
    "": {"apiVersion", "kind", "metadata", "spec"},
    "spec": {"slotsPerWorker", "runLauncherAsWorker", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath", "launcherCreationPolicy", "mpiImplementation"},
    "spec.runPolicy": {"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit", "schedulingPolicy", "suspend", "managedBy"},
    "spec.mpiReplicaSpecs": {"Launcher", "Worker"},
    "spec.mpiReplicaSpecs.Launcher": {"replicas", "template", "restartPolicy"},
    "spec.mpiReplicaSpecs.Worker": {"replicas", "template", "restartPolicy"},
}
VALUES = {
    "apiVersion": {"kubeflow.org/v2beta1"},
    "spec.launcherCreationPolicy": {"AtStartup", "WaitForWorkersReady"},
    "spec.mpiImplementation": {"OpenMPI", "Intel", "MPICH"},
    "spec.runPolicy.cleanPodPolicy": {"None", "Running", "All"},
    "spec.mpiReplicaSpecs.Launcher.replicas": {1},
    "spec.mpiReplicaSpecs.Launcher.restartPolicy": {"Never", "OnFailure"},
    "spec.mpiReplicaSpecs.Worker.restartPolicy": {"Never", "OnFailure"},
}
NUMBERS = ["spec.slotsPerWorker", "spec.runPolicy.backoffLimit", "spec.mpiReplicaSpecs.Worker.replicas"]


def at(document, path):
    for name in path.split(".") if path else []:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def schema_problems(document, what):
    try:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    except Exception as error:  # the package has several kinds
        return [f"{what}: {str(error).splitlines()[0]}"]
    return []


def mpi_job_problems(job):
    problems = []
    for path, names in FIELDS.items():
        found = at(job, path)
        if not isinstance(found, dict):
            problems.append(f"MPIJob: no {path}")
            continue
        problems += [f"MPIJob: {path}.{name} is not a field" for name in found if name not in names]
    problems += [f"MPIJob: {path} = {at(job, path)}" for path, values in VALUES.items() if at(job, path) is not None and at(job, path) not in values]
    problems += [f"MPIJob: {path} = {at(job, path)}" for path in NUMBERS if not isinstance(at(job, path), int) or at(job, path) < 1]
    for kind in ("Launcher", "Worker"):
        template = at(job, f"spec.mpiReplicaSpecs.{kind}.template") or {}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": kind.lower(), **template.get("metadata", {})}, "spec": template.get("spec")}
        problems += schema_problems(pod, f"pod of the {kind}")
        problems += volume_problems(pod, kind)
    return problems


def volume_problems(pod, kind):
    """what a schema does not see: each mount has its volume"""
    spec = pod["spec"] or {}
    volumes = {volume["name"] for volume in spec.get("volumes", [])}
    containers = spec.get("containers", []) + spec.get("initContainers", [])
    mounts = {mount["name"] for container in containers for mount in container.get("volumeMounts", [])}
    return [f"{kind}: no volume {name}" for name in sorted(mounts - volumes)] + [f"{kind}: volume {name} is not used" for name in sorted(volumes - mounts)]


def main(file, kinds):
    with open(file, encoding="utf-8") as text:
        documents = list(yaml.safe_load_all(text))
    problems = []
    if [document["kind"] for document in documents] != kinds:
        problems.append(f"kinds are {[document['kind'] for document in documents]}, not {kinds}")
    for document in documents:
        problems += mpi_job_problems(document) if document["kind"] == "MPIJob" else schema_problems(document, document["kind"])
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
