// SPDX-License-Identifier: Apache-2.0

package why

import "fmt"

// signal is a signal that ends programs, and what it means when one has.
type signal struct{ name, means string }

// signals that an operator meets; by their numbers on Linux.
func signals() map[int32]signal {
	return map[int32]signal{
		1: {"SIGHUP", "its terminal was closed, or it was told to read its configuration again and does not know how"},
		2: {"SIGINT", "it was interrupted, as by Ctrl-C"},
		3: {"SIGQUIT", "it was told to quit"},
		4: {"SIGILL", "the processor does not know one of its instructions: it was built for a newer processor"},
		5: {"SIGTRAP", "it stopped itself at a breakpoint or an assertion"},
		6: {"SIGABRT",
			"it ended itself because it found something wrong: an assertion, a corrupt heap, an uncaught exception"},
		7:  {"SIGBUS", "it used memory behind which there is no more file: one was cut short, or /dev/shm is full"},
		8:  {"SIGFPE", "it divided by zero, or did a calculation that has no result"},
		9:  {"SIGKILL", "it was killed, and could not do anything about it"},
		11: {"SIGSEGV", "it used memory that is not its own: a fault in the program or in a library"},
		13: {"SIGPIPE", "it wrote to a connection or pipe whose other end was closed"},
		14: {"SIGALRM", "a time that it had set itself was over"},
		15: {"SIGTERM", "it was told to end, and did"},
		24: {"SIGXCPU", "it used more processor time than its limit"},
		25: {"SIGXFSZ", "it wrote a file that is larger than its limit"},
		31: {"SIGSYS", "it made a system call that its seccomp profile does not allow"},
	}
}

// CodeWords says what an exit code means: what the code is known to stand for, or that it is the program's own.
func CodeWords(code int32) string {
	switch code {
	case 0:
		return "success"
	case 1:
		return "the program's own, by most used for any failure: its log says more"
	case 2:
		return "the program's own; shells and many others use it for wrong arguments"
	case 126:
		return "by a shell: the command was found, and may not or cannot be run"
	case 127:
		return "by a shell: there is no such command"
	case 128:
		return "the runtime could not start the program"
	case 255:
		return "the program's own, by many used for a failure they have no number for; also a program that could not be begun"
	}
	if s, ok := signals()[code-128]; ok {
		return fmt.Sprintf("128+%d: ended by signal %d, %s: %s", code-128, code-128, s.name, s.means)
	}
	if code > 128 && code <= 128+64 {
		return fmt.Sprintf("128+%d: ended by signal %d", code-128, code-128)
	}
	return "the program's own: its documentation or its log says what it means"
}

// signalOf is the signal that a code stands for; 0 if for none.
func signalOf(code int32) int32 {
	if code > 128 && code <= 128+64 {
		return code - 128
	}
	return 0
}
