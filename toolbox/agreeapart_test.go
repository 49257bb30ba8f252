// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// isolated tells of which commands each invocation is run in a network of its own, which has a loopback interface and nothing else.
func isolated(name string) bool {
	return slices.Contains([]string{"ip", "ifconfig", "route", "netstat", "nslookup", "telnet", "traceroute"}, name)
}

// onlyBusybox tells which commands are compared with busybox's alone: Debian has others of the name, but not in essential packages,
// and the comparison is the same whether they are installed or not.
func onlyBusybox(name string) bool {
	return isolated(name) || slices.Contains([]string{"dmesg", "free", "less", "mount", "ps", "top", "uptime", "vi", "watch"}, name)
}

// shape is, of commands that print what is of the moment, what can be compared of it; nil for others.
func shape(name string) func(stdout string) string {
	replacing := func(pairs ...string) func(string) string {
		return func(text string) string {
			for i := 0; i < len(pairs); i += 2 {
				text = regexp.MustCompile(pairs[i]).ReplaceAllString(text, pairs[i+1])
			}
			return text
		}
	}
	switch name {
	case "free": // the titles as they stand, and how many numbers there are
		return replacing(` *[0-9.]+[KMGT]?\b`, " N")
	case "uptime":
		return replacing(`[0-9]+(\.[0-9]+)?`, "N", ` +`, " ")
	case "ps": // the titles
		return func(text string) string {
			first, _, _ := strings.Cut(text, "\n")
			return strings.Join(strings.Fields(first), " ")
		}
	case "ip": // Debian's busybox leaves out the state, and the toolbox how long an address is valid
		return replacing(` state [A-Z]+`, "", `\\ +valid_lft.*`, "", `(?m)^ +valid_lft.*\n`, "")
	case "vi", "watch", "dmesg": // what they draw, and what the kernel says
		return func(string) string { return "" }
	}
	return nil
}

// withoutFolder leaves out that the folder itself has changed: vi puts a whole new file in the place of the old one.
func withoutFolder(files string) string {
	return regexp.MustCompile(`(^|; ): 755 d[^;]*`).ReplaceAllString(files, "")
}

// start starts a command. The namespaces of a network are those of the thread that starts it, which ends then.
func (c invocation) start(cmd *exec.Cmd) error {
	if !isolated(c.args[0]) || os.Geteuid() != 0 {
		return cmd.Start()
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = loopbackUp()
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
