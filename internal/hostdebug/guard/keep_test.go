// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// DA-09: what is no session's name is no cgroup's either, and where there are no cgroups that is an error, for a
// session that is in its agent's would be killed with it.
func TestKeepRefuses(t *testing.T) {
	none := Machine{Cgroups: t.TempDir()}
	if err := os.Mkdir(filepath.Join(none.Cgroups, "memory"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", "../../../x", "0123456789ab"} {
		if err := none.Keep(id); err == nil {
			t.Errorf("%q is kept", id)
		}
	}
	none.Leave("0123456789ab")
	none.SweepKept()
	if left, err := filepath.Glob(filepath.Join(none.Cgroups, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
}

// DA-09: a session begins beside another that ends, which removes the folder of all when it has found it empty.
func TestBeginsBesideAnEnd(t *testing.T) {
	m := Machine{Run: filepath.Join(t.TempDir(), "run")}
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-over:
				return
			default:
				_ = os.Remove(m.Run)
			}
		}
	}()
	for range 200 {
		if err := errors.Join(m.Make(id), os.Remove(m.Dir(id))); err != nil {
			t.Error(err)
			break
		}
	}
	close(over)
	<-gone
	if err := errors.Join(m.Make(id), m.Make("../../x")); err == nil || exists(filepath.Join(m.Run, "../../x")) {
		t.Errorf("a folder of what is no ID: %v", err)
	}
	if err := m.Make(id); !errors.Is(err, os.ErrExist) {
		t.Errorf("another's folder: %v", err)
	}
}

// What others have removed is made again, a bounded number of times, and nothing else is tried twice.
func TestPersist(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{os.ErrNotExist, 1 + mostTries},
		{fmt.Errorf("x: %w", &os.PathError{Op: "write", Err: unix.ENODEV}), 1 + mostTries},
		{os.ErrPermission, 1},
		{nil, 1},
	} {
		tries := 0
		if err := persist(func() error { tries++; return test.err }); err != test.err || tries != test.want {
			t.Errorf("%v: %v after %d", test.err, err, tries)
		}
	}
}

// What the kernel answers to who goes into a cgroup that was removed meanwhile is known for that.
func TestRemoved(t *testing.T) {
	all := Here().hierarchies()
	if len(all) == 0 {
		t.Skip("there are no cgroups here")
	}
	dir := filepath.Join(all[0], "wherry-guard-test-"+filepath.Base(filepath.Dir(t.TempDir())))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("a cgroup cannot be made here: %v", err)
	}
	procs, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
	if err := errors.Join(err, unix.Rmdir(dir)); err != nil {
		t.Fatal(err)
	}
	defer procs.Close()
	if _, err := procs.WriteString(strconv.Itoa(os.Getpid())); !removed(err) {
		t.Errorf("%v", err)
	}
}
