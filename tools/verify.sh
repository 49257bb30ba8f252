#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the generated files anew in place and fails if that changed one, putting the old one back. docs/dependencies.txt counts by
# its list of packages; sizes differ from build to build.
set -euo pipefail
cd "$(dirname "$0")/.."

old=$(mktemp -d)
put_back() {
	[ ! -d "$old/test/agree" ] || cp "$old"/test/agree/go.* test/agree/ # tidying is not what is verified
	rm -rf "$old"
}
trap put_back EXIT # also of one that is interrupted
mapfile -t files < <(git ls-files docs/dependencies.txt docs/behaviour.md docs/fields.md docs/attacks.md '*zz_generated*')
cp --parents "${files[@]}" test/agree/go.mod test/agree/go.sum "$old"

make --no-print-directory generate >/dev/null

status=0
for f in "${files[@]}"; do
	if ! diff -u "$old/$f" "$f" >"$old/diff"; then
		echo "verify: $f is out of date; run make generate" >&2
		head -n 40 "$old/diff" >&2
		cp "$old/$f" "$f"
		status=1
	fi
done
exit $status
