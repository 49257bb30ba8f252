#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes an image of Debian's PostgreSQL and busybox: postgres-image.sh ARCHIVE. Run it from the repository's root, after
# `tools/setup.sh busybox postgresql` has put their packages into bin/debian.
set -euo pipefail

archive=$1
root=bin/debian
here=examples/three-tier
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

programs=("$root"/usr/lib/postgresql/*/bin/{postgres,initdb,psql,pg_dump,pg_isready,pg_ctl})
version=$(basename "$(dirname "$(dirname "${programs[0]}")")")
for busybox in "$root/bin/busybox" "$root/usr/bin/busybox"; do [ ! -x "$busybox" ] || break; done

# What the programs are linked with: from the packages, or from this machine, which is a Debian too.
libs=$root/usr/lib/x86_64-linux-gnu
[ -d "$libs" ] || libs=$(dirname "$(find "$root/usr/lib" -name 'libpq.so.5' | head -1)")
export LD_LIBRARY_PATH=$PWD/$libs:$PWD/$root/lib/x86_64-linux-gnu
linked() { ldd "$@" | awk '/=> \// { print $3 } $1 ~ /^\// && !/:$/ { print $1 }' | sort -u; }
modules=("$root/usr/lib/postgresql/$version"/lib/{plpgsql,dict_snowball}.so)
if ldd "${programs[@]}" "${modules[@]}" | grep -q 'not found'; then
	ldd "${programs[@]}" "${modules[@]}" | grep 'not found' | sort -u >&2
	exit 1
fi

put() { install -D -m "$1" "$2" "$work/root$3"; }
for f in "${programs[@]}"; do put 755 "$f" "/usr/lib/postgresql/$version/bin/$(basename "$f")"; done
for f in "${modules[@]}"; do put 644 "$f" "/usr/lib/postgresql/$version/lib/$(basename "$f")"; done
while read -r lib; do
	case $lib in
	*/ld-linux*) put 755 "$lib" "/lib64/$(basename "$lib")" ;;
	*) put 755 "$(readlink -f "$lib")" "/usr/lib/x86_64-linux-gnu/$(basename "$lib")" ;;
	esac
done < <(linked "${programs[@]}" "${modules[@]}")
mkdir -p "$work/root/usr/share/postgresql"
cp -a "$root/usr/share/postgresql/$version" "$work/root/usr/share/postgresql/"
rm -rf "$work/root/usr/share/postgresql/$version/man"
put 755 "$here/postgres.sh" /usr/local/bin/postgres.sh
put 755 "$busybox" /bin/busybox
for name in sh rm mv ls cat mkdir chmod sleep; do ln -s busybox "$work/root/bin/$name"; done
printf 'root:x:0:0:root:/root:/bin/sh\npostgres:x:999:999:PostgreSQL:/var/lib/postgresql:/bin/sh\n' >"$work/passwd"
printf 'root:x:0:\npostgres:x:999:\n' >"$work/group"
put 644 "$work/passwd" /etc/passwd
put 644 "$work/group" /etc/group

go run ./tools/mkimage -o "$archive" -ref wherry.example/postgres:1 -tree "$work/root" -file =/tmp:1777 \
	-env "PATH=/usr/lib/postgresql/$version/bin:/bin" -env LC_ALL=C -env TZ=UTC -user 999:999 -exposed 5432/tcp -stop-signal SIGINT \
	-entrypoint /usr/local/bin/postgres.sh
