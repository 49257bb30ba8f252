// SPDX-License-Identifier: Apache-2.0

// The front program of wherry's shim: what containerd starts for a pod, and the process that holds a pod's namespaces.
// It is C and static because it is started several times for each pod, and one of it stays: it takes a millisecond and
// some hundred kilobytes, where the program behind it (cmd/wherry-shim) takes ten and some megabytes.
//
//	containerd-shim-wherry-v1 ... start    makes the pod's socket and starts wherry-shim on it (see start.c)
//	containerd-shim-wherry-v1 ... delete   answers at once if the shim has left nothing behind
//	containerd-shim-wherry-v1 ...          anything else is wherry-shim's to do
//	/pause                                 holds namespaces (see hold.c)

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "front.h"

void die(const char *what) {
	dprintf(STDERR_FILENO, "containerd-shim-wherry-v1: %s: %s\n", what, strerror(errno));
	exit(1);
}

// behind runs the program behind, which lies beside this one, in this one's place.
void behind(char **argv) {
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof BEHIND - 1);
	if (n <= 0)
		die("/proc/self/exe");
	path[n] = 0;
	char *slash = strrchr(path, '/');
	strcpy(slash + 1, BEHIND);
	argv[0] = path;
	execv(path, argv);
	die(path);
}

// answered gives the answer to "delete" that the shim has left in its bundle, the working folder, when nothing is left
// of the container.
static int answered(void) {
	char answer[4096];
	int fd = open("gone", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, answer, sizeof answer);
	return n >= 0 && n < (ssize_t)sizeof answer && write(STDOUT_FILENO, answer, n) == n;
}

int main(int argc, char **argv) {
	if (argc == 1 && strcmp(argv[0], "/pause") == 0)
		return hold();
	const char *action = argc > 0 ? argv[argc - 1] : "";
	if (strcmp(action, "start") == 0)
		return start(argc, argv);
	if (strcmp(action, "delete") == 0 && answered())
		return 0;
	behind(argv);
}
