#!/bin/sh
# Schemas of Kubernetes for the test of `hlat launch --print k8s`: the pip package kubernetes-validate, in a Python environment of the
# project's own (.venv-build). Says nothing when nothing is missing. Without it that test is skipped.
set -eu
validate=kubernetes-validate==1.37.0
needs="PyYAML==6.0.3 jsonschema==4.26.0 jsonschema-specifications==2025.9.1 referencing==0.37.0 rpds-py==2026.9.1 attrs==26.1.0
  importlib-resources==7.1.0 packaging==26.3 typing-extensions==4.16.0"

cd "$(dirname "$0")/.."
ls .venv-build/lib/python3*/site-packages/kubernetes_validate/__init__.py >/dev/null 2>&1 && exit 0

echo "setup: installing $validate in .venv-build" >&2
pip="install -q --disable-pip-version-check --no-deps --only-binary :all:"
# shellcheck disable=SC2086  # lists of options and packages
if python3 -m venv .venv-build && .venv-build/bin/python -m pip $pip "$validate" $needs; then exit 0; fi
echo "setup: could not install $validate: the Kubernetes manifest is not checked by schemas" >&2
