#!/bin/sh
# Apache Arrow C++ for .arrow and .parquet files: headers and libraries of the pip package pyarrow, in a Python environment of
# the project's own (.venv-build). Debian 12 has no Arrow. Says nothing when nothing is missing. Without it hlat builds too, and
# says so when such a file is opened.
set -eu
arrow=pyarrow==26.0.0

cd "$(dirname "$0")/.."
ls .venv-build/lib/python3*/site-packages/pyarrow/include/arrow/api.h >/dev/null 2>&1 && exit 0

echo "setup: installing $arrow in .venv-build" >&2
pip="install -q --disable-pip-version-check --no-deps --only-binary :all:"
# shellcheck disable=SC2086  # a list of options
if python3 -m venv .venv-build && .venv-build/bin/pip $pip "$arrow"; then exit 0; fi
echo "setup: could not install $arrow: building without Arrow" >&2
