// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
)

// The tests run in a network namespace of their own that plays the host: TestMain starts the test binary again inside
// one. So they touch nothing of the machine, and all they leave behind vanishes with the namespace.
func TestMain(m *testing.M) {
	const mark = "WHERRY_NETPOLICY_TEST_NAMESPACE"
	if os.Getuid() != 0 || os.Getenv(mark) != "" {
		if os.Getuid() == 0 {
			lo, err := netlink.LinkByName("lo")
			if err == nil {
				err = netlink.LinkSetUp(lo)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "lo up:", err)
				os.Exit(1)
			}
		}
		os.Exit(m.Run())
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), mark+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
}
