// SPDX-License-Identifier: Apache-2.0

// The process that holds a pod's namespaces open. It is the init of the pod's PID namespace when that is shared, so
// it reaps whatever is left to it; it ends on SIGTERM and SIGINT.

#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	// Blocked signals are delivered to sigwaitinfo, also for PID 1, which otherwise ignores those without a handler.
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return 1;
	for (;;) {
		// Several children may hide behind one SIGCHLD, and some may have ended before it was blocked.
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		int sig = sigwaitinfo(&set, NULL);
		if (sig == SIGTERM || sig == SIGINT)
			return 0;
	}
}
