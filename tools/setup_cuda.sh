#!/bin/sh
# Headers for the cuDNN attention, where a CUDA toolkit is found: the header-only cuDNN frontend and, when the toolkit has no
# cudnn.h, cuDNN's own headers. Both come from pip packages, in a Python environment of the project's own (.venv-build).
# Says nothing when nothing is missing. Without them hlat builds too, with its own attention kernels.
set -eu
frontend=nvidia-cudnn-frontend==1.32.0
cudnn=nvidia-cudnn-cu13==9.19.0.56

cd "$(dirname "$0")/.."
# The order of cmake/cuda.cmake.
nvcc=
for toolkit in "${CUDA_HOME:-}" "${CUDA_PATH:-}"; do
  [ -n "$nvcc" ] || [ -z "$toolkit" ] || [ ! -x "$toolkit/bin/nvcc" ] || nvcc=$toolkit/bin/nvcc
done
[ -n "$nvcc" ] || nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || [ ! -x /usr/local/cuda/bin/nvcc ] || nvcc=/usr/local/cuda/bin/nvcc
[ -n "$nvcc" ] || exit 0
toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")

packages=
ls .venv-build/lib/python3*/site-packages/include/cudnn_frontend.h >/dev/null 2>&1 || packages=$frontend
[ -e "$toolkit/include/cudnn.h" ] || [ -e /usr/include/cudnn.h ] ||
  ls .venv-build/lib/python3*/site-packages/nvidia/cudnn/include/cudnn.h >/dev/null 2>&1 || packages="$packages $cudnn"
[ -n "$packages" ] || exit 0

echo "setup: installing $packages in .venv-build" >&2
# shellcheck disable=SC2086  # a list of package names
if python3 -m venv .venv-build && .venv-build/bin/pip install -q --disable-pip-version-check --no-deps $packages; then exit 0; fi
echo "setup: could not install $packages: building without cuDNN" >&2
