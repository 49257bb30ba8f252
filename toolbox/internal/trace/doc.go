// SPDX-License-Identifier: Apache-2.0

// Package trace has strace: it shows the system calls of a process that it starts or that runs already.
//
// Its law: what is traced goes on when strace ends, however that was; only what is started by strace can be traced from
// its first call on. The kernel says what a call is (PTRACE_GET_SYSCALL_INFO), so nothing here depends on registers.
package trace

import "github.com/wherryproject/wherry/toolbox/internal/applet"

// Applets returns the package's commands.
func Applets() []applet.Applet {
	return []applet.Applet{{Name: "strace", Usage: "[COMMAND [ARG]...]",
		Short: "Show the system calls of a command, or with -p of a process", Run: strace}}
}
