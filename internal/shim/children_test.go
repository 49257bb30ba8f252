// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/go-runc"
	"golang.org/x/sys/unix"
)

// collecting collects the ends of this process's children until the test ends.
func collecting(t *testing.T) *children {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	c := newChildren()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGCHLD)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range signals {
			c.collect()
		}
	}()
	t.Cleanup(func() {
		signal.Stop(signals)
		close(signals)
		<-done
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	})
	return c
}

func within[T any](t *testing.T, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(20 * time.Second):
		t.Fatalf("never: %s", what)
	}
	return v
}

// PL-38: the end of a process that was started here is told with its status.
func TestChildrenStarted(t *testing.T) {
	c := collecting(t)
	for _, locked := range []bool{false, true} {
		begin := c.Start
		if locked {
			begin = c.StartLocked
		}
		for script, want := range map[string]int{"exit 3": 3, "kill -TERM $$": 128 + 15, "true": 0} {
			cmd := exec.Command("/bin/sh", "-c", script)
			end, err := begin(cmd)
			if err != nil {
				t.Fatal(err)
			}
			if status, err := c.Wait(cmd, end); err != nil || status != want {
				t.Errorf("%s: %d, %v, want %d", script, status, err, want)
			}
		}
		if _, err := begin(exec.Command("/no/such/program")); err == nil {
			t.Error("a program that does not exist was started")
		}
	}
}

const orphanScript = "WHERRY_TEST_ORPHAN"

// TestMain is the parent of an orphan, if it is told so: it starts a process, says its number and ends, as runc does. A
// shell would not do: it may collect its child's end.
func TestMain(m *testing.M) {
	script, told := os.LookupEnv(orphanScript)
	if !told {
		os.Exit(m.Run())
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	if err := cmd.Start(); err != nil {
		os.Exit(1)
	}
	fmt.Println(cmd.Process.Pid)
	os.Exit(0)
}

// orphan starts a process whose parent ends at once, and gives its number.
func orphan(t *testing.T, c *children, script string) int {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orphanScript+"="+script)
	cmd.Stdout = w
	end, err := c.Start(cmd)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Wait(cmd, end)
	var pid int
	if _, err := fmt.Fscan(r, &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// PL-38: a process that somebody else has started is adopted, also when it has ended before that: its end is
// never lost, and never told twice.
func TestChildrenAdopted(t *testing.T) {
	c := collecting(t)
	done := c.expect()
	early := orphan(t, c, "exit 4")
	eventually(t, "its end is known", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, known := c.unknown[early]
		return known
	})
	if e := within(t, "the end of one that had ended", c.adopt(early)); e.Status != 4 || e.Pid != early {
		t.Errorf("%+v", e)
	}
	late := orphan(t, c, "kill -STOP $$; exit 5")
	end := c.adopt(late)
	eventually(t, "it has stopped", func() bool { return stopped(late) })
	_ = unix.Kill(late, unix.SIGCONT)
	if e := within(t, "the end of one that ran", end); e.Status != 5 {
		t.Errorf("%+v", e)
	}
	done()
	if len(c.unknown) != 0 || len(c.waiting) != 0 {
		t.Errorf("kept: %v, %v", c.unknown, c.waiting)
	}
	var _ runc.ProcessMonitor = c
}

func stopped(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && strings.HasPrefix(rest, "T")
}

// eventually waits for something that has no event of its own.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
