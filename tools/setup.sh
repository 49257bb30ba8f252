#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sees to it that this machine can build wherry: names what is missing and, as root on Debian, installs it.
# Arguments: what the tests want besides, "containerd", "docker", "podman", "postgresql" and "busybox": Debian's packages, unpacked into bin/debian; nothing of them
# is installed or started. "chromium" is installed, for it needs more of Debian than can be unpacked beside it. With NEEDED=1 it is an error if one cannot be had: a test that was skipped looks like one that passed.
set -euo pipefail
cd "$(dirname "$0")/.."

missing() { echo "setup: $*" >&2; }
lacking() {
	missing "$*"
	[ -z "${NEEDED:-}" ]
}

apt_updated=
apt() {
	if [ -z "$apt_updated" ]; then
		apt-get update -qq
		apt_updated=1
	fi
	DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=4 "$@"
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

# unpack gets Debian packages and unpacks them into bin/debian.
unpack() {
	if ! command -v apt-get >/dev/null; then
		missing "this is not Debian: $* cannot be had"
		return 1
	fi
	rm -rf bin/debian/packages
	mkdir -p bin/debian/packages
	if [ -z "$apt_updated" ] && [ "$(id -u)" -eq 0 ]; then
		apt-get update -qq
		apt_updated=1
	fi
	(cd bin/debian/packages && apt-get -o APT::Sandbox::User=root -o Acquire::Retries=4 download -qq "$@") || return 1
	for deb in bin/debian/packages/*.deb; do dpkg -x "$deb" bin/debian; done
}

# postgresql names the packages of Debian's PostgreSQL: the server, the client and the libraries that this machine lacks.
postgresql() {
	local version
	version=$(apt-cache depends postgresql | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p')
	[ -n "$version" ] || return 1
	echo "postgresql-$version" "postgresql-client-$version"
	apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "postgresql-$version" |
		grep '^lib' | grep -v -e llvm -e perl -e '^libc6' | sort -u | while read -r lib; do
		dpkg-query -W -f '${Status}' "$lib" 2>/dev/null | grep -q 'install ok installed' || echo "$lib"
	done
}

for part in "$@"; do
	case $part in
	containerd)
		[ -x bin/debian/usr/bin/containerd ] && [ -x bin/debian/usr/lib/cni/bridge ] || unpack containerd runc containernetworking-plugins ||
			lacking "Debian's containerd could not be had; the tests against it cannot run"
		;;
	docker)
		[ -x bin/debian/usr/sbin/dockerd ] || unpack docker.io libdevmapper1.02.1 ||
			lacking "Debian's Docker could not be had; the test against it cannot run"
		;;
	podman)
		[ -x bin/debian/usr/bin/podman ] || unpack podman conmon golang-github-containers-common golang-github-containers-image \
			libgpgme11 libassuan0 libdevmapper1.02.1 libsubid4 || lacking "Debian's podman could not be had; the test against it cannot run"
		;;
	postgresql)
		ls bin/debian/usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || unpack $(postgresql) ||
			lacking "Debian's PostgreSQL could not be had; the test of the three-tier example cannot run"
		;;
	busybox)
		[ -x bin/debian/bin/busybox ] || [ -x bin/debian/usr/bin/busybox ] || unpack busybox-static ||
			lacking "Debian's busybox-static could not be had; the tests that use it cannot run"
		;;
	chromium)
		if ! command -v chromium >/dev/null; then
			if can_install; then
				echo "setup: installing chromium (for the tests of the page)"
				apt install -y -qq --no-install-recommends chromium >/dev/null || lacking "chromium could not be installed; the page is not tested in a browser"
			else
				lacking "chromium is not installed; the page is not tested in a browser (as root on Debian: apt-get install chromium)"
			fi
		fi
		;;
	*)
		missing "unknown part $part"
		exit 2
		;;
	esac
done
