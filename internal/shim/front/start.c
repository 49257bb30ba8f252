// SPDX-License-Identifier: Apache-2.0

// Starting a pod's shim: the socket is made here and inherited, so that containerd can connect to it while the shim is
// still starting.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "front.h"

#define INHERITED 3 // where the shim expects its socket
#define VERSION 3   // of containerd's task API

// option finds an option's value.
static const char *option(int argc, char **argv, const char *name) {
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	errno = EINVAL;
	die(name);
}

// listening makes the socket. One that is there is of a shim whose bundle is gone: containerd has each pod's shim
// started once.
static int listening(const struct sockaddr_un *at) {
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket");
	umask(0177);
	unlink(at->sun_path);
	if (bind(fd, (const struct sockaddr *)at, sizeof *at) < 0 || listen(fd, 128) < 0)
		die(at->sun_path);
	umask(022);
	return fd;
}

// yield has the kernel take the shim's memory before that of the server that has started it.
static void yield(pid_t shim) {
	char path[64], score[16];
	int n = 0, fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, score, sizeof score - 1);
		close(fd);
	}
	if (n <= 0)
		return;
	score[n] = 0;
	int adj = atoi(score);
	snprintf(path, sizeof path, "/proc/%d/oom_score_adj", shim);
	if (adj < 1000 && (fd = open(path, O_WRONLY | O_CLOEXEC)) >= 0) {
		dprintf(fd, "%d", adj + 1);
		close(fd);
	}
}

// run starts the shim, with the arguments that this program was given but the last, and returns its number. If it cannot
// be started the socket is closed with it, and containerd is refused.
static pid_t run(int argc, char **argv, int sock) {
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (pid > 0)
		return pid;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	setpgid(0, 0);
	if (sock == INHERITED)
		fcntl(sock, F_SETFD, 0);
	else
		dup2(sock, INHERITED);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	argv[argc - 1] = NULL;
	behind(argv);
}

// answer tells containerd where the shim is: a BootstrapResult (runtime/bootstrap/v1), whose strings are short enough
// for a length of one byte.
static void answer(const char *path) {
	char out[256];
	int length = strlen("unix://") + strlen(path);
	int n = snprintf(out, sizeof out, "%c%c%c%c%s%s%c%c%s", 1 << 3, VERSION, 2 << 3 | 2, length, "unix://", path,
			 3 << 3 | 2, 5, "ttrpc");
	if (write(STDOUT_FILENO, out, n) != n)
		die("answer");
}

int start(int argc, char **argv) {
	const char *dir = getenv("WHERRY_SHIM_SOCKETS");
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	if (dir == NULL) {
		errno = EINVAL;
		die("WHERRY_SHIM_SOCKETS");
	}
	if (snprintf(at.sun_path, sizeof at.sun_path, "%s/%s", dir, option(argc, argv, "-id")) >= (int)sizeof at.sun_path) {
		errno = ENAMETOOLONG;
		die(dir);
	}
	mkdir(dir, 0711);
	yield(run(argc, argv, listening(&at)));
	answer(at.sun_path);
	return 0;
}
