#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes archives of images that stand in for those the conformance suite runs: images.sh OUT. They are made of agnhost,
# which is built from its module, and of programs of this machine (Debian's packages, see need below); nothing is
# fetched. Each has the name that the suite asks for, so that no registry is needed once they are imported.
set -euo pipefail
repo=$(cd "$(dirname "$0")/../.." && pwd)
out=$(mkdir -p "${1:?folder of the build}" && cd "$1" && pwd)
bin=$out/bin roots=$out/roots tars=$out/images
rm -rf "$roots" # of a run before
mkdir -p "$roots" "$tars"

need=(busybox-static:busybox bash-static:bash-static curl:curl netcat-openbsd:nc.openbsd iproute2:ip bind9-dnsutils:dig dash:dash
	hostname:hostname openssl:openssl gcc:gcc)
for pair in "${need[@]}"; do
	command -v "${pair#*:}" >/dev/null || { echo "conformance: ${pair#*:} is missing: apt-get install ${pair%:*}" >&2; missing=1; }
done
[ -z "${missing:-}" ] || exit 1

(cd "$repo" && go build -o "$bin/mkimage" ./tools/mkimage)
wanted=$("$bin/e2e.test" --list-images 2>/dev/null)

# archives NAME FLAGS…: an archive for each tag of an image that the suite asks for. A label of its own makes each an
# image of its own: a runtime knows images by their contents.
archives() {
	local name=$1 ref
	shift
	while read -r ref; do
		[ -n "$ref" ] || continue
		"$bin/mkimage" -o "$tars/$(tr '/:' '__' <<<"${ref#*/}").tar" -ref "$ref" -label "stand-in=$ref" \
			-env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
	done < <(grep -E "/$name:" <<<"$wanted" || true)
}

compile() { gcc -static -Os -s -x c -o "$1" -; }

# program ROOT NAME [AS]: a program of this machine with the libraries that it is linked with.
program() {
	local from lib
	from=$(readlink -f "$(command -v "$2")")
	rm -f "$1/bin/${3:-$2}"
	install -D -m 755 "$from" "$1/usr/bin/${3:-$2}"
	for lib in $(ldd "$from" 2>/dev/null | grep -oE '/[^ ]+' || true); do
		install -D -m 755 "$lib" "$1$lib"
	done
}

# system ROOT: what a small distribution has.
system() {
	rm -rf "$1"
	mkdir -p "$1"/{bin,sbin,etc,root,tmp,home,usr/{bin,sbin,local/bin},var/{run,tmp}}
	chmod 1777 "$1/tmp" "$1/var/tmp"
	install -m 755 "$(command -v busybox)" "$1/bin/busybox"
	local applet
	for applet in $(busybox --list); do
		[ "$applet" = busybox ] || ln -s /bin/busybox "$1/bin/$applet"
	done
	install -m 755 "$out/nmeter" "$1/bin/nmeter"
	printf '%s\n' root:x:0:0::/root:/bin/sh nobody:x:65534:65534::/:/bin/false >"$1/etc/passwd"
	printf '%s\n' root:x:0: nogroup:x:65534: >"$1/etc/group"
	printf 'ID=stand-in\nNAME="in the place of Alpine Linux"\n' >"$1/etc/os-release"
	echo 'hosts: files dns' >"$1/etc/nsswitch.conf"
}

# Debian's busybox lacks nmeter, which specs of hooks have tell the time of day.
compile "$out/nmeter" <<'C'
#include <stdio.h>
#include <time.h>
int main(void) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	struct tm *t = gmtime(&now.tv_sec);
	printf("%02d:%02d:%02d.%03ld\n", t->tm_hour, t->tm_min, t->tm_sec, now.tv_nsec / 1000000);
}
C

mkdir -p "$roots/pause"
compile "$roots/pause/pause" <<'C'
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, 0);
	for (;;) {
		int got;
		sigwait(&all, &got);
		if (got == SIGINT || got == SIGTERM) return 0;
		while (waitpid(-1, 0, WNOHANG) > 0);
	}
}
C
archives pause -tree "$roots/pause" -entrypoint /pause -user 65535:65535

system "$roots/busybox"
# Its shell forgets variables whose names are none to a shell; specs print the environment by it.
rm "$roots/busybox/bin/sh"
compile "$roots/busybox/bin/sh" <<'C'
#include <string.h>
#include <unistd.h>
int main(int n, char **arg) {
	int env = n == 3 && !strcmp(arg[1], "-c") && !strcmp(arg[2], "env");
	if (env) execl("/bin/busybox", "env", (char *)0);
	else execv("/bin/busybox", arg);
	return 127;
}
C
archives busybox -tree "$roots/busybox" -cmd sh
archives nonroot -tree "$roots/busybox" -cmd sh -user 1234
archives ipc-utils -tree "$roots/busybox" -cmd sh

cp -a "$roots/busybox" "$roots/nnp"
compile "$roots/nnp/usr/local/bin/nnp" <<'C'
#include <stdio.h>
#include <unistd.h>
int main(void) { printf("Effective uid: %d\n", geteuid()); }
C
chmod 4755 "$roots/nnp/usr/local/bin/nnp"
archives nonewprivs -tree "$roots/nnp" -cmd nnp

cp -a "$roots/busybox" "$roots/nginx"
mkdir "$roots/nginx/www"
echo '<title>Welcome to nginx!</title>' >"$roots/nginx/www/index.html"
printf '#!/bin/sh\ntrap "exit 0" TERM INT QUIT\nbusybox httpd -f -p 80 -h /www & wait\n' >"$roots/nginx/usr/sbin/nginx"
chmod 755 "$roots/nginx/usr/sbin/nginx"
archives nginx -tree "$roots/nginx" -cmd /usr/sbin/nginx

system "$roots/agnhost"
for name in curl ip ss dig nslookup getent hostname printenv dash; do program "$roots/agnhost" "$name"; done
program "$roots/agnhost" nc.openbsd nc
program "$roots/agnhost" bash-static bash
ln -sf /usr/bin/dash "$roots/agnhost/bin/sh" # busybox' own runs its applets whatever PATH says
rm -f "$roots/agnhost/bin/bash" && ln -s /usr/bin/bash "$roots/agnhost/bin/bash"
# The static busybox crashes in wget where there are shared libraries of its C library, such as curl's.
rm -f "$roots/agnhost/bin/wget"
cat >"$roots/agnhost/bin/wget" <<'SH'
#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	-q) ;;
	-O | -T) [ "$1" = -O ] && to=$2 || limit=$2; shift ;;
	-qO- | -O-) to=- ;;
	-*) echo "wget: $1 is not known here" >&2; exit 2 ;;
	*) url=$1 ;;
	esac
	shift
done
exec curl -sSfL ${limit:+-m "$limit"} -o "${to:-${url##*/}}" "$url"
SH
chmod 755 "$roots/agnhost/bin/wget"
install -m 755 "$bin/agnhost" "$roots/agnhost/agnhost"
ln -s agnhost "$roots/agnhost/agnhost-2"
mkdir "$roots/agnhost/uploads"
echo 'user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh' >>"$roots/agnhost/etc/passwd"
printf '%s\n' user-defined-in-image:x:1000: group-defined-in-image:x:50000:user-defined-in-image >>"$roots/agnhost/etc/group"
openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
	-keyout "$roots/agnhost/localhost.key" -out "$roots/agnhost/localhost.crt" 2>/dev/null
chmod 644 "$roots/agnhost/localhost.key"
archives agnhost -tree "$roots/agnhost" -entrypoint /agnhost -cmd pause \
	-exposed 80/tcp -exposed 5000/tcp -exposed 8080/tcp -exposed 8081/tcp -exposed 9376/tcp
archives glibc-dns-testing -tree "$roots/agnhost" -cmd sh
for name in kitten nautilus; do
	echo "{\"image\": \"$name.jpg\"}" >"$roots/agnhost/data.json"
	archives $name -tree "$roots/agnhost" -entrypoint /agnhost -cmd test-webserver
done
