// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/hostdebug/session"
	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// first is the program of the first process of a session.
func first(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), session.KitFirst)
	if err := place(session.KitFirst, path); errors.Is(err, bundle.ErrNotBuilt) {
		t.Skip("this needs the helper programs: run make helpers")
	} else if err != nil {
		t.Fatal(err)
	}
	return path
}

// The command has its own exit code, streams and signals, also one that cannot be run.
func TestFirst(t *testing.T) {
	program := first(t)
	for command, want := range map[string]int{"exit 7": 7, "kill -KILL $$": 137, "kill -TERM $PPID; exec sleep 100": 143,
		"trap 'exit 3' USR1; kill -USR1 $PPID; while :; do :; done": 3, "exec nothing-of-that-name": 127,
		"cat | grep -q typed": 0, "exec kill -0 $PPID": 0} {
		cmd := exec.Command(program, "sh", "-c", command)
		cmd.Stdin = strings.NewReader("typed")
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != want {
			t.Errorf("%s: %v, want %d", command, err, want)
		}
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/no/such/shell\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]int{script: 127, t.TempDir(): 126} {
		var said bytes.Buffer
		cmd := exec.Command(program, file)
		cmd.Stderr = &said
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != want || !strings.HasPrefix(said.String(), "wherry: "+file+": ") {
			t.Errorf("%s: %v, %q, want %d", file, err, said.String(), want)
		}
	}
}

// DA-09: what the command leaves is killed and reaped before the first process says that it goes, and it goes when it
// may.
func TestFirstReaps(t *testing.T) {
	program := first(t)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	cmd := exec.Command(program, "sh", "-c", `sleep 1000 & echo $!; setsid sh -c 'trap "" TERM HUP; sleep 1000 & echo $!; echo $$; wait' & read x`)
	cmd.ExtraFiles = []*os.File{theirs}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var left []int
	for len(left) < 3 && lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, pid)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := ours.Read(make([]byte, 1)); n != 1 {
		t.Fatalf("it does not say that it goes: %v", err)
	}
	for _, pid := range left {
		if err := unix.Kill(pid, 0); err != unix.ESRCH {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	if err := unix.Kill(cmd.Process.Pid, 0); err != nil {
		t.Errorf("it has not waited: %v", err)
	}
	ours.Close()
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 { // read has found the end
		t.Errorf("%v", err)
	}
	if cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Error("it was killed")
	}
}
