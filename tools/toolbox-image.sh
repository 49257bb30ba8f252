#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the debug image's archive: toolbox-image.sh PROGRAM ARCHIVE. Run it from the repository's root. For a program of another
# architecture, TOOLBOX_ARCH names that and TOOLBOX_LIST the same program for this machine, which is asked for its names.
set -euo pipefail

program=$1
archive=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$work/passwd"
printf 'root:x:0:\ntty:x:5:\nnobody:x:65534:\n' >"$work/group"

args=(
	-o "$archive" -ref wherry.dev/toolbox:build -cmd /bin/sh -env PATH=/bin -env HOME=/root -workdir /
	-label org.opencontainers.image.title=wherry.dev/toolbox
	-label "org.opencontainers.image.licenses=Apache-2.0 AND BSD-3-Clause AND MIT"
	-file "$program=/bin/toolbox:0755" -file "$work/passwd=/etc/passwd:0644" -file "$work/group=/etc/group:0644"
	-file =/root:0755 -file =/tmp:1777 -file =/proc:0555 -file =/sys:0555 -file =/dev:0755
	-file "LICENSE=/licenses/wherry:0644" -file "$(go env GOROOT)/LICENSE=/licenses/go:0644"
)
[ -z "${TOOLBOX_ARCH:-}" ] || args+=(-arch "$TOOLBOX_ARCH")
for name in $("${TOOLBOX_LIST:-$program}" --list); do
	args+=(-link "toolbox=/bin/$name")
done
# The modules that are in the program, by what the program itself says.
while read -r module; do
	dir=$(cd toolbox && go list -m -f '{{.Dir}}' "$module")
	license=$dir/LICENSE
	[ -e "$license" ] || license=$dir/LICENSE.txt
	args+=(-file "$license=/licenses/${module//\//-}:0644")
done < <(go version -m "$program" | awk '$1 == "dep" { print $2 }')

go run ./tools/mkimage "${args[@]}"
