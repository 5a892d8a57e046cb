#!/usr/bin/env bash
# Times storage-class memory beside its peers and writes the rows into docs/benchmarks/scm.md,
# between its two marks. Peers that are not installed are named below the rows: libjemalloc2,
# libmimalloc2.0, libpmemobj1, xfsprogs, a C compiler.
#
#   tests/bench/scm.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

. tests/bench/common.sh
measure scm
publish scm "scm figures" scm.json
exit "$status"
