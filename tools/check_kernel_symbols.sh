#!/bin/sh
# Checks what the per-instruction-set kernel objects define: check_kernel_symbols.sh [BUILD_DIR]
# An inline function or template compiled there and not inlined is a weak symbol. The linker keeps one copy of it for the whole
# program, perhaps the AVX-512 one, and generic code then crashes on a CPU without AVX-512. So every external symbol of an object
# of hlat_kernels_<isa> must belong to namespace hlat::...::<isa>. Mark such helpers `static`, force them inline, or put them in
# the kernel namespace.
set -eu

dir=${1:-build}
objects=0
bad=0
for isa in generic avx2 avx512 amx; do
  for object in "$dir/CMakeFiles/hlat_kernels_$isa.dir/src/backend/cpu/kernels"/*.o; do
    [ -e "$object" ] || continue
    objects=$((objects + 1))
    # Columns of nm: address, kind, name. DW.ref.*: a pointer for exception tables; *asan*: bookkeeping of the sanitizer.
    wrong=$(nm -C --defined-only --extern-only "$object" | cut -d' ' -f2- |
      grep -Ev "(^|[^A-Za-z0-9_])hlat::([a-z0-9_]+::)*$isa([^A-Za-z0-9_]|\$)|^. DW\.ref\.|^. (__asan|__odr_asan|asan\.)" || true)
    if [ -n "$wrong" ]; then
      bad=1
      echo "$object defines symbols outside namespace hlat::$isa:" >&2
      printf '%s\n' "$wrong" | sed 's/^/  /' >&2
    fi
  done
done
if [ "$objects" -eq 0 ]; then
  echo "no kernel objects under $dir: build first" >&2
  exit 1
fi
exit $bad
