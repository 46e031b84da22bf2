// A manifest for Kubernetes with the MPI operator: `kubectl apply -f FILE`. A ConfigMap with the config, a claim of the shared volume,
// and an MPIJob (kubeflow.org/v2beta1): its launcher runs hlat launch, which reaches the workers by ssh over the operator's hostfile.
// Runs and checkpoints lie on the shared volume; caches are local to a node, and copied there from the shared one at start.
#pragma once

#include <string>

#include "supervise/cluster_job.h"

namespace hlat {

std::string k8s_job(const Config& config, const JobOptions& options);

}  // namespace hlat
