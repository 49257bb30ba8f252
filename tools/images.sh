#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the image of wherry for clusters: images.sh VERSION LDFLAGS ARCH..., from the repository's root, after make build. It leaves an OCI
# layout in dist/wherry-VERSION.oci and the same as an archive beside it.
#
# bin/wherry is taken for this machine's architecture. For another one the program is built here, with what debugging needs of that one's
# helpers and without what only a server carries (shim, CNI plug-in, pause image): the image is for debugging in clusters. That needs a C compiler for that
# architecture, which CC_arm64 and the like name (default: aarch64-linux-gnu-gcc, x86_64-linux-gnu-gcc), and libseccomp's static library.
# On Debian: dpkg --add-architecture arm64, apt update, apt install gcc-aarch64-linux-gnu libseccomp-dev:arm64.
set -euo pipefail

version=$1
ldflags=$2
shift 2
own=$(go env GOARCH)
bundle=$PWD/internal/runtime/bundle/bin

compiler() {
	local chosen=CC_$1
	case $1 in
	arm64) echo "${!chosen:-aarch64-linux-gnu-gcc}" ;;
	amd64) echo "${!chosen:-x86_64-linux-gnu-gcc}" ;;
	*) echo "images.sh: no entry point is written for $1" >&2 && return 1 ;;
	esac
}

# libraries is where those of another architecture are described, unless PKG_CONFIG_LIBDIR says so.
libraries() {
	case $1 in
	arm64) echo "${PKG_CONFIG_LIBDIR:-/usr/lib/aarch64-linux-gnu/pkgconfig}" ;;
	amd64) echo "${PKG_CONFIG_LIBDIR:-/usr/lib/x86_64-linux-gnu/pkgconfig}" ;;
	esac
}

# overlay makes the program's build see the other architecture's toolbox and runc, and nothing else, where this one's helpers are.
overlay() {
	local to=$1 file
	echo '{"Replace": {'
	for file in "$bundle"/*; do
		case $(basename "$file") in
		toolbox.tar | runc.zst | wherry-first.zst | wherry-session.zst | SHA256SUMS) printf '"%s": "%s",\n' "$file" "$to/$(basename "$file")" ;;
		*) printf '"%s": "",\n' "$file" ;;
		esac
	done
	printf '"%s": ""}}\n' "$bundle/none"
}

cross() {
	local arch=$1 to=$PWD/bin/.images/$1 cc
	cc=$(compiler "$arch")
	command -v "$cc" >/dev/null || { echo "images.sh: $cc is not here: install gcc-aarch64-linux-gnu or the like, or name the architectures with make images ARCHS=$own" >&2; return 1; }
	mkdir -p "$to"
	(cd toolbox && GOARCH=$arch go build -ldflags '-s -w -X=runtime.godebugDefault=disablethp=1' -o "$to/toolbox" .)
	TOOLBOX_ARCH=$arch TOOLBOX_LIST=bin/.helpers/toolbox tools/toolbox-image.sh "$to/toolbox" "$to/toolbox.tar"
	GOARCH=$arch CGO_ENABLED=1 CC=$cc PKG_CONFIG_LIBDIR=$(libraries "$arch") go build -o "$to/runc" \
		-tags 'seccomp netgo osusergo urfave_cli_no_docs' -ldflags '-s -w -extldflags -static' github.com/opencontainers/runc
	GOARCH=$arch go build -o "$to/wherry-session" -ldflags '-s -w -X=runtime.godebugDefault=disablethp=1' ./cmd/wherry-session
	"$cc" -static -Os -s -Wall -Wextra -o "$to/wherry-first" internal/hostdebug/first/first.c
	local program
	for program in runc wherry-first wherry-session; do go run ./tools/pack -o "$to/$program.zst" "$to/$program"; done
	(cd "$to" && sha256sum runc wherry-first wherry-session toolbox.tar >SHA256SUMS)
	overlay "$to" >"$to/overlay.json"
	GOARCH=$arch go build -overlay "$to/overlay.json" -ldflags "$ldflags" -o "$to/main" ./cmd/wherry
	GOARCH=$arch go build -overlay "$to/overlay.json" -ldflags '-s -w -T 0x40001000' -o "$to/short" ./cmd/wherry-short
	"$cc" -Os -Wall -Wextra -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -fno-pic -no-pie -static -nostdlib \
		-Wl,--build-id=none,-z,noseparate-code,-z,noexecstack,-Ttext-segment=0x3ff00000 -o "$to/entry" cmd/wherry-short/entry/entry.c
	go run ./tools/elfjoin -o "$to/wherry" -entry "$to/entry" "$to/main" "$to/short"
}

programs=()
for arch in "$@"; do
	if [ "$arch" = "$own" ]; then
		programs+=("$arch=bin/wherry")
	else
		cross "$arch"
		programs+=("$arch=bin/.images/$arch/wherry")
	fi
done
layout=dist/wherry-$version.oci
mkdir -p dist
rm -rf "$layout" "$layout.tar"
go run ./tools/clusterimage -o "$layout" -version "$version" "${programs[@]}"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$layout" -cf "$layout.tar" .
echo "$layout.tar: ${programs[*]}"
