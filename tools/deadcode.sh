#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails if a function has no caller in any of the programs, nor a line in tools/deadcode/kept.txt. That a test calls it is not enough: it
# would be kept for nothing but its test. Packages made for tests are left out; what they do not export staticcheck looks after.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C # sort and comm agree

ours=github.com/wherryproject/wherry
for_tests='^(internal/check|internal/cri/critest|internal/api/connect/kubelettest|internal/cluster/agent/agenttest|internal/node/csi/csitest|internal/leaktest|internal/ui/oidc/oidctest|test|tools/failpoints/fail)[/ ]'
root=$PWD
mkdir -p bin
(cd tools/deadcode && go build -o "$root/bin/deadcode" golang.org/x/tools/cmd/deadcode)

# dead lists "package function" of the module in a folder. GOGC: it takes 5 GB of memory otherwise.
dead() {
	local found
	found=$(cd "$1" && GOGC=50 "$root/bin/deadcode" -filter "^$ours/" -f '{{$p := .Path}}{{range .Funcs}}{{println $p .Name}}{{end}}' ./...) || return
	sed -n "s|^$ours/||p" <<<"$found"
}

found=$(dead . && dead toolbox)
found=$(grep -Ev "$for_tests" <<<"$found" | sort)
kept=$(sed -n 's/ *#.*//; /./p' tools/deadcode/kept.txt | sort)
new=$(comm -23 <(echo "$found") <(echo "$kept"))
old=$(comm -13 <(echo "$found") <(echo "$kept"))
[ -z "$new" ] || { echo "Without a caller in any program (remove them, or say in tools/deadcode/kept.txt why they stay):"; echo "$new"; }
[ -z "$old" ] || { echo "Used, or gone, and still in tools/deadcode/kept.txt:"; echo "$old"; }
[ -z "$new$old" ]
