#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs each fuzz target for FUZZTIME, FUZZJOBS at a time. Go keeps what widens the coverage in its cache and begins with it the next
# time; an input that fails is written below the package's testdata/fuzz, to be committed with the mending.
# PACKAGES, if set, are the only ones looked at.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-30s}
jobs=${FUZZJOBS:-4} # as many as two cores bear: a target gets its time, if not a whole core
root=$PWD
corpus=$(go env GOCACHE)/fuzz
out=$root/bin/fuzz
rm -rf "$out"
mkdir -p "$out" "$corpus"

# Every target is one line: its package's folder, the compiled test, its name. A package is compiled once for all of its targets.
list=$out/targets
: >"$list"
grep -rl --include='*_test.go' '^func Fuzz' ${PACKAGES:-internal toolbox/internal} | xargs -n1 dirname | sort -u | while read -r dir; do
	binary=$out/${dir//\//-}.test
	module=$([[ $dir == toolbox/* ]] && echo toolbox || echo .)
	(cd "$module" && go test -c -fuzz=. -o "$binary" "./$(realpath --relative-to="$module" "$root/$dir" 2>/dev/null || echo "$dir")")
	cat "$dir"/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' | while read -r target; do
		echo "$dir $binary $target" >>"$list"
	done
done

one() {
	local dir=$1 binary=$2 target=$3 log
	log=$binary.$target.log
	if (cd "$dir" && "$binary" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" -test.parallel 1 \
		-test.fuzzcachedir "$corpus/$dir") >"$log" 2>&1; then
		echo "ok   $dir $target $(grep -o 'execs: [0-9]*' "$log" | tail -1)"
	else
		echo "FAIL $dir $target"
		cat "$log"
		return 1
	fi
}
export -f one
export time corpus
xargs -P "$jobs" -L1 bash -c 'one "$@"' one <"$list"
