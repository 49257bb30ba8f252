#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs go test with the given arguments. Many tests watch real processes on a machine that may be busy with something else, so what fails is
# run once more, alone: the run fails only for what fails twice, and what failed once is a fault with a name, which is printed and written to
# bin/seen-once (docs/decisions/042-what-refuses-a-change.md).
#   AGAIN=0     no second try
#   STRICT=1    the second try tells what failed by chance, and the run fails for it all the same
#   ONCE=1      the results are not wanted again: build faster, without keeping them
#   TESTFLAGS   further flags of go test (-count=2 -shuffle=on)
set -uo pipefail

here=$PWD
cd "$(dirname "$0")/.." && root=$PWD && cd "$here" || exit 1
mkdir -p "$root/bin"
log=$(mktemp "$root/bin/gotest.XXXXXX")
trap 'rm -f "$log"' EXIT

# `make lint` vets everything, with more analyzers: once more here would be minutes for the same answer.
# Compiling and linking, which is a third of a run, takes a quarter less of a processor when garbage is collected less often; the tests
# themselves, and what they build, run with what is usual. Results of tests that are started by another program are not cached.
# What debuggers need of a test's program is a quarter of linking it.
usual=("-ldflags=-s -w")
if [ "${ONCE:-0}" = 1 ]; then
	export GOGC=400 GOMEMLIMIT=4GiB
	usual+=("-exec=env -u GOGC -u GOMEMLIMIT")
fi
# shellcheck disable=SC2086 # they are several words
go test -vet=off "${usual[@]}" "$@" ${TESTFLAGS:-} 2>&1 | tee "$log"
[ "${PIPESTATUS[0]}" -eq 0 ] && exit 0

# failures lists "package tests": the tests, divided by |, of a package that failed, or "." where none of them is named (a panic, a time limit).
# A package that cannot be built is "package !".
failures() {
	awk '
		/^--- FAIL: / { if (!($3 in seen)) { seen[$3]; names = names (names == "" ? "" : "|") $3 } next }
		/^FAIL\t/ {
			print $2, (/\[(build|setup) failed\]$/ ? "!" : names == "" ? "." : "^(" names ")$")
		}
		/^(FAIL|ok  )\t/ { names = ""; delete seen }
	' "$log"
}

mapfile -t failed < <(failures)
tests=$(grep -c '^--- FAIL: ' "$log")
if [ "${AGAIN:-1}" = 0 ] || [ ${#failed[@]} -eq 0 ] || [ "$tests" -gt 12 ] || grep -q ' !$' <<<"$(printf '%s\n' "${failed[@]}")"; then
	exit 1 # not a matter of single tests
fi

# What says how to build and how long to wait holds for the second try too; which packages and tests, is known by now.
options=()
while [ $# -gt 0 ]; do
	case $1 in
	-race | -short | -timeout=*) options+=("$1") ;;
	-timeout) options+=("$1" "$2") && shift ;;
	esac
	shift
done

status=0
once=()
for f in "${failed[@]}"; do
	package=${f%% *} which=${f#* }
	printf '\n=== run again, alone: %s %s\n' "$package" "$which"
	if go test -vet=off "${usual[@]}" "${options[@]}" -count=1 -p 1 -parallel 1 -run "$which" "$package"; then
		printf '%s %s\n' "$package" "$which" >>"$root/bin/seen-once"
		once+=("$f")
		[ "${STRICT:-0}" != 1 ] || status=1
	else
		status=1
	fi
done
[ ${#once[@]} -eq 0 ] || printf '\n=== failed once, and not when run again, which is to be explained: see above for\n%s\n' "$(printf '    %s\n' "${once[@]}")"
exit $status
