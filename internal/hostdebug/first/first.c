// SPDX-License-Identifier: Apache-2.0

// The first process of a debugger: it runs the command in its arguments, and is the parent of whatever the command
// leaves behind. When the command has ended it kills and reaps all of that, so that nothing defunct is left to the first
// process of the container that is debugged, which may reap nobody. Then it says on descriptor 3, if that is open, that
// it is about to end, and waits there until it may. Signals are for the command. What runs here is in the container's
// PID namespace, with the debugger's own rights, and starts in a millisecond.

#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { session = 3, cannot_run = 126, not_found = 127, patience = 500 /* times 2 ms for what was killed to be gone */ };

// parent_of is who has started a process; 0 where that is not known (any more).
static pid_t parent_of(const char *pid) {
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%.16s/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	char *after = strrchr(text, ')'); // its name may have any character in it
	int parent = 0;
	return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

// kill_children kills those that this process has. Theirs are its own then.
static void kill_children(void) {
	DIR *all = opendir("/proc");
	if (!all)
		return;
	for (struct dirent *e; (e = readdir(all));)
		if (isdigit((unsigned char)e->d_name[0]) && parent_of(e->d_name) == getpid())
			kill(atoi(e->d_name), SIGKILL);
	closedir(all);
}

// end_rest ends what the command has left. What cannot be killed from here is left to who ends the session.
static void end_rest(void) {
	const struct timespec moment = {0, 2000000};
	for (int tries = 0; tries < patience; tries++) {
		pid_t pid;
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0)
			return; // there is none
		kill_children();
		nanosleep(&moment, NULL);
	}
}

// take_leave says that this process is about to end, and waits until whoever hears it agrees or is gone.
static void take_leave(void) {
	char c = 0;
	if (write(session, &c, 1) == 1)
		while (read(session, &c, 1) > 0 || errno == EINTR)
			errno = 0;
}

// start runs the command, in a process group that has the terminal, if there is one. It returns its process.
static pid_t start(char **command, const sigset_t *signals) {
	int failed[2];
	if (pipe2(failed, O_CLOEXEC) != 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		tcsetpgrp(STDIN_FILENO, getpgrp()); // SIGTTOU is blocked
		sigprocmask(SIG_SETMASK, signals, NULL);
		execvp(command[0], command);
		int why = errno;
		(void)!write(failed[1], &why, sizeof why);
		_exit(cannot_run);
	}
	close(failed[1]);
	int why = 0;
	if (pid > 0 && read(failed[0], &why, sizeof why) == sizeof why) {
		waitpid(pid, NULL, 0);
		dprintf(STDERR_FILENO, "wherry: %s: %s\n", command[0], strerror(why));
		exit(why == ENOENT ? not_found : cannot_run);
	}
	close(failed[0]);
	return pid;
}

int main(int argc, char **argv) {
	if (argc < 2) {
		dprintf(STDERR_FILENO, "this is for wherry's own use\n");
		return 2;
	}
	fcntl(session, F_SETFD, FD_CLOEXEC);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigset_t all, before;
	sigfillset(&all);
	for (const int *s = (const int[]){SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGABRT, SIGTRAP, SIGSYS, 0}; *s; s++)
		sigdelset(&all, *s);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid_t command = start(argv + 1, &before);
	if (command < 0) {
		dprintf(STDERR_FILENO, "wherry: %s: %s\n", argv[1], strerror(errno));
		return cannot_run;
	}
	for (;;) {
		pid_t pid;
		int how, code = -1;
		while ((pid = waitpid(-1, &how, WNOHANG)) > 0)
			if (pid == command)
				code = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
		if (code >= 0) {
			end_rest();
			take_leave();
			return code;
		}
		int sig = sigwaitinfo(&all, NULL);
		if (sig > 0 && sig != SIGCHLD)
			kill(command, sig);
	}
}
