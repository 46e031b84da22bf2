#!/bin/sh
# uPlot, which draws the curves of `hlat report`: its script and style from the pip package uplot-python, in a Python environment of the
# project's own (.venv-build). Debian 12 has no uPlot. Says nothing when nothing is missing. Without it hlat builds too, and
# `hlat report --out` says what is missing.
set -eu
plot=uplot-python==1.1.1

cd "$(dirname "$0")/.."
ls .venv-build/lib/python3*/site-packages/uplot/static/uPlot.iife.js >/dev/null 2>&1 && exit 0

echo "setup: installing $plot in .venv-build" >&2
pip="install -q --disable-pip-version-check --no-deps --only-binary :all:"
if [ ! -x .venv-build/bin/pip ]; then python3 -m venv .venv-build || true; fi
# shellcheck disable=SC2086  # a list of options
if .venv-build/bin/pip $pip "$plot"; then exit 0; fi
echo "setup: could not install $plot: building without uPlot" >&2
