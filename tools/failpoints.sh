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

# The CNI plug-in inside the program is the one with failpoints.
build overlay.json bin/wherry-cni ./cmd/wherry-cni
bundle=$PWD/internal/runtime/bundle/bin
{ grep -v ' wherry-cni$' "$bundle/SHA256SUMS"; (cd "$out/bin" && sha256sum wherry-cni); } >"$out/bin/SHA256SUMS"
go run ./tools/pack -o "$out/bin/wherry-cni.zst" "$out/bin/wherry-cni"
sed "s|\"Replace\": {|&\"$bundle/wherry-cni.zst\": \"$out/bin/wherry-cni.zst\", \"$bundle/SHA256SUMS\": \"$out/bin/SHA256SUMS\",|" \
	"$out/overlay.json" >"$out/overlay-all.json"
build overlay-all.json wherry ./cmd/wherry
