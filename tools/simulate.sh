#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs SEEDS simulated worlds from FIRST on, as many at a time as there are processors: a world has one clock, and one process one world.
# What fails is told with its seed, and `go test ./test/simulate -run TestWorlds -seed N -seeds 1 -log -v` runs it again.
set -uo pipefail
cd "$(dirname "$0")/.."

seeds=${SEEDS:-200}
first=${FIRST:-1}
jobs=${JOBS:-$(nproc)}
mkdir -p bin/simulate
rm -f bin/simulate/*.log
go test -c -o bin/simulate/test ./test/simulate || exit 1

share=$(((seeds + jobs - 1) / jobs))
pids=()
for ((j = 0; j < jobs; j++)); do
	from=$((first + j * share))
	n=$((first + seeds - from))
	[ "$n" -gt "$share" ] && n=$share
	[ "$n" -gt 0 ] || continue
	bin/simulate/test -test.run '^TestWorlds$' -test.timeout 24h -seed "$from" -seeds "$n" >"bin/simulate/$j.log" 2>&1 &
	pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
if [ $failed -ne 0 ]; then
	grep -hE '^ *--- FAIL|^ +[a-z_]+_test.go|^panic|^fatal' bin/simulate/*.log
	exit 1
fi
echo "ok   $seeds simulated worlds, seeds $first to $((first + seeds - 1)), in $SECONDS s"
