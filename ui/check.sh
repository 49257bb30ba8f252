#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Says whether internal/ui/dist is what the sources of the page give. The digest of the sources, dist/SOURCES, is always compared. Where node
# and npm are, the page is built anew, into a temporary folder, and compared file by file; not with DIGEST=1.

set -euo pipefail
cd "$(dirname "$0")"
dist=../internal/ui/dist

digest() {
	{
		printf '%s\0' index.html package.json package-lock.json tsconfig.json vite.config.ts
		find src -type f -print0
	} | xargs -0 sha256sum | LC_ALL=C sort | sha256sum | cut -d' ' -f1
}

if [ ! -f "$dist/SOURCES" ]; then
	echo "ui: $dist/SOURCES is missing: run make ui" >&2
	exit 1
fi
if [ "$(digest)" != "$(cat "$dist/SOURCES")" ]; then
	echo "ui: the sources of the page have changed since it was built: run make ui, and commit internal/ui/dist" >&2
	exit 1
fi
if [ "${DIGEST:-0}" = 1 ]; then
	echo "ui: the digest of the sources is that of the built page"
	exit 0
fi
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
	echo "ui: the digest of the sources is that of the built page; node and npm are not here, so it was not built anew"
	exit 0
fi
[ -d node_modules ] || npm ci --no-audit --no-fund --silent
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
npx vite build --outDir "$built" --emptyOutDir --logLevel error
digest >"$built/SOURCES"
if ! diff -rq "$dist" "$built" >&2; then
	echo "ui: internal/ui/dist is not what the sources give: run make ui, and commit it" >&2
	exit 1
fi
echo "ui: internal/ui/dist is what the sources give"
