// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// limits shows a limit of the processes.
func limits(hc interp.HandlerContext, args []string) []string {
	which := map[string]int{"-n": unix.RLIMIT_NOFILE, "-c": unix.RLIMIT_CORE, "-u": unix.RLIMIT_NPROC,
		"-v": unix.RLIMIT_AS, "-s": unix.RLIMIT_STACK, "-l": unix.RLIMIT_MEMLOCK, "-f": unix.RLIMIT_FSIZE}
	flag := "-f"
	if len(args) > 0 {
		flag = args[0]
	}
	limit, ok := which[flag]
	var r unix.Rlimit
	if !ok || len(args) > 1 {
		fmt.Fprintln(hc.Stderr,
			"ulimit: only showing a limit is known: -n files, -u processes, -c core, -s stack, -l locked, -v memory, -f file size")
		return []string{"false"}
	}
	if err := unix.Getrlimit(limit, &r); err != nil {
		fmt.Fprintln(hc.Stderr, "ulimit:", err)
		return []string{"false"}
	}
	if r.Cur == unix.RLIM_INFINITY {
		fmt.Fprintln(hc.Stdout, "unlimited")
	} else {
		fmt.Fprintln(hc.Stdout, r.Cur)
	}
	return []string{"true"}
}
