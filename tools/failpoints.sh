#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds bin/.failpoints/wherry: the server with a failpoint at every place where it changes something (tools/failpoints). The sources are
# not touched; go.mod neither, whose copy has the modules that were rewritten.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/bin/.failpoints
mkdir -p "$out/bin"
go build -o "$out/failpoints" ./tools/failpoints
"$out/failpoints" -o "$out"

cp go.mod go.sum "$out"
(cd "$out" && go mod edit $(<replaced) go.mod)

build() { CGO_ENABLED=0 go build -trimpath -mod=mod -modfile "$out/go.mod" -overlay "$out/$1" -ldflags '-s -w' -o "$out/$2" "$3"; }

# The CNI plug-in and the shim inside the program are those with failpoints.
bundle=$PWD/internal/runtime/bundle/bin
helpers=(wherry-cni wherry-shim)
grep -vE " ($(IFS='|'; echo "${helpers[*]}"))$" "$bundle/SHA256SUMS" >"$out/bin/SHA256SUMS"
places="\"$bundle/SHA256SUMS\": \"$out/bin/SHA256SUMS\","
for helper in "${helpers[@]}"; do
	build overlay.json "bin/$helper" "./cmd/$helper"
	(cd "$out/bin" && sha256sum "$helper") >>"$out/bin/SHA256SUMS"
	go run ./tools/pack -o "$out/bin/$helper.zst" "$out/bin/$helper"
	places+="\"$bundle/$helper.zst\": \"$out/bin/$helper.zst\","
done
sed "s|\"Replace\": {|&$places|" "$out/overlay.json" >"$out/overlay-all.json"
build overlay-all.json wherry ./cmd/wherry
