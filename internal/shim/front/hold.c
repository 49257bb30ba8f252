// SPDX-License-Identifier: Apache-2.0

// The process that holds a pod's namespaces. Where they have a PID namespace it is the first process there, and reaps
// what is left to it. It has no file system but an empty one, no user, no capability, and nobody may look into it: what
// can see it in a pod must not get at the machine through it.
//
// What it is to do comes as words, each ended by a zero byte, on descriptor 5, so that its command line says nothing of
// the machine; it says how far it is on 4, and ends when the other end of 3 is closed, which is when the shim has ended.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "front.h"

#define LIFE 3
#define SAY 4
#define WORDS 5
#define NOBODY 65535

// fail says what is wrong.
static void fail(const char *what) {
	dprintf(SAY, "%s: %s\n", what, strerror(errno));
	_exit(1);
}

static int namespace(const char *path) {
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(path);
	return fd;
}

// become is to be root of a user namespace, where there is one.
static void become(void) {
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		fail("root of the user namespace");
}

// set writes a sysctl: "file=value".
static void set(char *word) {
	char path[512], *value = strchr(word, '=');
	if (value == NULL) {
		errno = EINVAL;
		fail(word);
	}
	*value++ = 0;
	snprintf(path, sizeof path, "/proc/sys/%s", word);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail(path);
	close(fd);
}

// hide leaves all of the machine's files: root is an empty folder where an empty file system is mounted, which becomes
// everything there is.
static void hide(const char *root) {
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		fail("private mounts");
	if (mount("none", root, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "size=4k,nr_inodes=4,mode=0555") < 0)
		fail("empty file system");
	if (chdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		fail("leave the machine's files");
}

// drop gives up all rights, for good.
static void drop(void) {
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	for (int cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	setgroups(0, NULL); // a user namespace may forbid it
	// A user namespace may be too small to have this user: no capability is left either way.
	if (setresgid(NOBODY, NOBODY, NOBODY) == 0)
		(void)!setresuid(NOBODY, NOBODY, NOBODY);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_capset, &head, none) < 0)
		fail("give up capabilities");
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// stay reaps children until it is told to end, or the shim ends.
static int stay(const sigset_t *set) {
	int events = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	struct pollfd wait[2] = {{.fd = LIFE}, {.fd = events, .events = POLLIN}};
	struct signalfd_siginfo got;
	if (events < 0)
		fail("signals");
	dprintf(SAY, "ready\n");
	close(SAY);
	for (;;) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (poll(wait, 2, -1) < 0 && errno != EINTR)
			return 1;
		if (wait[0].revents)
			return 0;
		while (read(events, &got, sizeof got) == sizeof got)
			if (got.ssi_signo != SIGCHLD)
				return 0;
	}
}

// held is the process in the namespaces; told ends when its first words are said by the one that has made it.
static int held(const char *root, int told) {
	char end;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL); // also the first process of a PID namespace is told of blocked signals
	while (read(told, &end, 1) > 0)
		;
	close(told);
	prctl(PR_SET_NAME, "pause", 0, 0, 0);
	hide(root);
	drop();
	return stay(&set);
}

// words reads all words, and a last empty one.
static char *words(void) {
	static char all[128 << 10];
	size_t have = 0;
	for (ssize_t n; (n = read(WORDS, all + have, sizeof all - 2 - have)) > 0;)
		have += n;
	close(WORDS);
	if (have >= sizeof all - 2) {
		errno = E2BIG;
		fail("words");
	}
	return all;
}

int hold(void) {
	const char *root = NULL, *host = NULL;
	int made = CLONE_NEWNS, user = -1, net = -1, root_of_user = 0, told[2];
	char *sysctls[256];
	int count = 0;
	for (char *w = words(); *w != 0; w += strlen(w) + 1) {
		char *value = w + 1;
		switch (*w) {
		case 'u': user = namespace(value); // fallthrough
		case 'U': root_of_user = 1; break;
		case 'n': net = namespace(value); break;
		case 'N': made |= CLONE_NEWNET; break;
		case 'i': made |= CLONE_NEWIPC; break;
		case 't': made |= CLONE_NEWUTS; break;
		case 'p': made |= CLONE_NEWPID; break;
		case 'h': host = value; break;
		case 'r': root = value; break;
		case 's':
			if (count < 256)
				sysctls[count++] = value;
			break;
		default: errno = EINVAL; fail(w);
		}
	}
	// All is opened by now: in a user namespace it might not be to be seen.
	if (user >= 0 && setns(user, CLONE_NEWUSER) < 0)
		fail("user namespace");
	if (root_of_user)
		become();
	if (net >= 0 && setns(net, CLONE_NEWNET) < 0)
		fail("network namespace");
	if (root == NULL || unshare(made) < 0)
		fail("namespaces");
	if (host != NULL && sethostname(host, strlen(host)) < 0)
		fail("host name");
	for (int i = 0; i < count; i++)
		set(sysctls[i]);
	if (pipe2(told, O_CLOEXEC) < 0)
		fail("pipe");
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		close(told[1]);
		_exit(held(root, told[0]));
	}
	dprintf(SAY, "%d\n", pid);
	_exit(0);
}
