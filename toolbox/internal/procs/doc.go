// SPDX-License-Identifier: Apache-2.0

// Package procs has the commands about processes, users and the machine: ps, top, kill, lsof, nsenter and their kind.
//
// Its law: everything comes from /proc, so it is about the PID namespace whose /proc is mounted; a process that ends
// while it is looked at is left out, and one that may not be looked into is shown with what may be known. [All] reads
// the processes, [Applets] lists the commands.
package procs

import "github.com/wherryproject/wherry/toolbox/internal/applet"

// Applets returns the package's commands. known tells whether the toolbox has a command.
func Applets(known func(name string) bool) []applet.Applet {
	r := runner{known}
	return []applet.Applet{
		{Name: "chroot", Usage: "FOLDER [COMMAND [ARG]...]", Short: "Run a command with another root folder",
			Run: r.chroot},
		{Name: "clear", Short: "Clear the screen", Run: clearScreen},
		{Name: "date", Usage: "[+FORMAT]", Short: "Print the time", Run: date},
		{Name: "dmesg", Short: "Print the kernel's messages", Names: true, Run: dmesg},
		{Name: "env", Usage: "[NAME=VALUE]... [COMMAND [ARG]...]",
			Short: "Run a command with another environment, or print it", Run: r.env},
		{Name: "false", Short: "Fail", Run: func(*applet.Call) error { return applet.Exit(1) }},
		{Name: "free", Short: "Show how much memory is free", Run: free},
		{Name: "groups", Usage: "[USER]", Short: "Print the groups one is in", Names: true, Run: groups},
		{Name: "hostname", Usage: "", Short: "Print the machine's name", Names: true, Run: hostname},
		{Name: "id", Usage: "[USER]", Short: "Print user and groups", Names: true, Run: id},
		{Name: "kill", Usage: "[-SIGNAL] PID...", Short: "Send a signal to processes", Run: kill},
		{Name: "lsof", Usage: "[FILE]...", Short: "List open files", Names: true, Run: lsof},
		{Name: "nohup", Usage: "COMMAND [ARG]...", Short: "Run a command that outlives the terminal", Run: r.nohup},
		{Name: "nproc", Short: "Print the number of processors", Run: nproc},
		{Name: "nsenter", Usage: "[COMMAND [ARG]...]", Short: "Run a command in another process's namespaces",
			Run: r.nsenter},
		{Name: "pgrep", Usage: "PATTERN", Short: "Find processes by name", Names: true, Run: pgrep},
		{Name: "pidof", Usage: "NAME...", Short: "Print the ids of programs that run", Names: true, Run: pidof},
		{Name: "pkill", Usage: "[-SIGNAL] PATTERN", Short: "Send a signal to processes, by name", Run: pkill},
		{Name: "printenv", Usage: "[NAME]...", Short: "Print the environment", Run: printenv},
		{Name: "proc-pack",
			Short: "Write what the kernel tells of processes and sockets to standard output, as a tar archive",
			Run:   procPack},
		{Name: "ps", Usage: "[aux | -ef]", Short: "List the processes of this PID namespace", Names: true, Run: ps},
		{Name: "setsid", Usage: "COMMAND [ARG]...", Short: "Run a command in a session of its own", Run: r.setsid},
		{Name: "sleep", Usage: "TIME...", Short: "Wait; TIME in seconds, or with s, m, h, d", Run: sleep},
		{Name: "sysctl", Usage: "[NAME]...", Short: "Print kernel settings", Run: sysctl},
		{Name: "time", Usage: "COMMAND [ARG]...", Short: "Run a command and say how long it took", Run: r.time},
		{Name: "stty", Usage: "[SETTING]...",
			Short: "Show or set the terminal: size, rows N, cols N, echo, -echo, raw, sane", Run: stty},
		{Name: "timeout", Usage: "TIME COMMAND [ARG]...",
			Short: "Run a command for at most that long; exit code 124 if it was longer", Run: r.timeout},
		{Name: "top", Short: "Show the processes that use most, again and again", Run: top},
		{Name: "true", Short: "Do nothing, successfully", Run: func(*applet.Call) error { return nil }},
		{Name: "tty", Short: "Print the terminal's name", Run: tty},
		{Name: "uname", Short: "Print the kernel's name and version", Run: uname},
		{Name: "uptime", Short: "Print how long the machine has run, and its load", Run: uptime},
		{Name: "watch", Usage: "COMMAND [ARG]...", Short: "Run a command again and again", Run: r.watch},
		{Name: "which", Usage: "NAME...", Short: "Find programs in PATH", Names: true, Run: which},
		{Name: "whoami", Short: "Print one's user name", Names: true, Run: whoami},
		{Name: "xargs", Usage: "[COMMAND [ARG]...]", Short: "Run a command with arguments from standard input",
			Run: r.xargs},
		{Name: "yes", Usage: "[TEXT]", Short: "Print a line again and again", Run: yes},
	}
}
