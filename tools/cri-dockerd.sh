#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds bin/cri-dockerd, which the end-to-end tests put between Docker and the agent, from its module (test/cridockerd/go.mod).
# The one change: it accepts the API of Debian 12's Docker, 1.41. The release that can be had wants 1.42 because Docker 20.10 is no
# longer maintained, and asks for nothing that 1.41 lacks.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root/test/cridockerd"
mkdir -p "$root/bin"
out=$root/bin/cri-dockerd
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$root/tools/retry.sh" go mod download github.com/Mirantis/cri-dockerd # go list names no folder for what is not on this machine yet
cp -r "$(go list -m -f '{{.Dir}}' github.com/Mirantis/cri-dockerd)" "$work/src"
chmod -R u+w "$work/src"
client=$work/src/libdocker/client.go
sed -i 's/MinimumDockerAPIVersion = "1.42.0"/MinimumDockerAPIVersion = "1.41.0"/' "$client"
grep -q '"1.41.0"' "$client" || { echo "cri-dockerd: the least version of the API is not where it was; see $0" >&2; exit 1; }
cd "$work/src"
"$root/tools/retry.sh" go list -mod=mod -deps . >/dev/null
go build -mod=mod -ldflags '-s -w' -o "$out" .
