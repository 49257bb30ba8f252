#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sees to it that this machine can build wherry: names what is missing and, as root on Debian, installs it.
# Arguments: names of optional parts to get as well: "containerd" (Debian's package, unpacked into bin/debian for the tests of an
# external runtime; nothing is installed or started).
set -euo pipefail
cd "$(dirname "$0")/.."

missing() { echo "setup: $*" >&2; }

apt_updated=
apt() {
	if [ -z "$apt_updated" ]; then
		apt-get update -qq
		apt_updated=1
	fi
	DEBIAN_FRONTEND=noninteractive apt-get "$@"
}
can_install() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

bad=
for tool in go gcc; do
	if ! command -v $tool >/dev/null; then
		missing "$tool is not installed; wherry is built with it"
		bad=1
	fi
done
[ -z "$bad" ] || exit 1

have_seccomp() { echo 'int main(void){return 0;}' | gcc -static -x c -o /dev/null - -lseccomp 2>/dev/null; }
if ! have_seccomp; then
	if can_install; then
		echo "setup: installing libseccomp-dev (for runc's seccomp profiles)"
		apt install -y -qq --no-install-recommends libseccomp-dev >/dev/null || missing "libseccomp-dev could not be installed; seccomp profiles will not work"
	else
		missing "libseccomp-dev is not installed; seccomp profiles will not work (as root: apt-get install libseccomp-dev)"
	fi
fi

for part in "$@"; do
	case $part in
	containerd)
		[ ! -x bin/debian/usr/bin/containerd ] || continue
		if ! command -v apt-get >/dev/null; then
			missing "this is not Debian; the test against Debian's containerd will be skipped"
			continue
		fi
		mkdir -p bin/debian/packages
		[ -n "$apt_updated" ] || [ "$(id -u)" -ne 0 ] || { apt-get update -qq; apt_updated=1; }
		if (cd bin/debian/packages && apt-get download -qq containerd runc); then
			for deb in bin/debian/packages/*.deb; do dpkg -x "$deb" bin/debian; done
		else
			missing "Debian's containerd could not be had; the test against it will be skipped"
		fi
		;;
	*)
		missing "unknown part $part"
		exit 2
		;;
	esac
done
