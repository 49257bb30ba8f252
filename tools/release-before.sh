#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the release that upgrades are tested from, from this repository's history: bin/.before/wherry. Which one that is, is written down in
# test/e2e/testdata/release-before; whoever makes a release writes its commit there. Without that commit at hand, as in a shallow
# clone, it builds nothing and says so, and the test is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$(cat test/e2e/testdata/release-before)
out=bin/.before
if [ -x "$out/wherry" ] && [ "$(cat "$out/commit" 2>/dev/null)" = "$commit" ]; then
	exit 0
fi
rm -rf "$out"
if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
	echo "note: commit $commit is not in this clone (git fetch --unshallow): upgrades from it are not tested" >&2
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
git archive "$commit" | tar -x -C "$dir"
MAKEFLAGS= make -C "$dir" build >/dev/null # what is told to the make around it is not for this one
mkdir -p "$out"
cp "$dir/bin/wherry" "$out/wherry"
echo "$commit" >"$out/commit"
