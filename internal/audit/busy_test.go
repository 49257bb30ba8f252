// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/audit/trail"
)

// TestBusySharesAreApart (RS-04): one who is over their share and writes without end displaces nothing that others did who are over theirs, also
// after the server was started again; and those for whom there is no log left displace only one another's.
func TestBusySharesAreApart(t *testing.T) {
	dir := t.TempDir()
	o := Defaults()
	o.Log.MaxSize, o.Log.MaxBackups, o.Log.Compress = 1, 20, false
	paths := trail.Busy(DefaultPath(dir))
	var r *Recorder
	start := func() {
		var err error
		if r, err = Open(o, dir); err != nil {
			t.Fatal(err)
		}
	}
	stop := func() {
		r.Backend.Shutdown()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write := func(user string, n int) {
		t.Helper()
		for range n {
			ev := numbered(1)
			ev.User.Username, ev.ResponseStatus, ev.UserAgent = user, &metav1.Status{Code: 201}, strings.Repeat("x", 8000)
			if !r.Backend.ProcessEvents(ev) {
				t.Fatal("not recorded")
			}
		}
	}
	count := func(user string) (n int) {
		for _, path := range append(paths, DefaultPath(dir)) {
			for _, e := range read(t, path) {
				if e.User == user {
					n++
				}
			}
		}
		return n
	}
	start()
	write("jane", 60) // a fifth of the log is 25 of these
	write("eve", 1000)
	if n := count("jane"); n != 60 {
		t.Errorf("%d of jane's 60 are left", n)
	}
	stop()
	start()
	write("eve", 1000)
	if n := count("jane"); n != 60 {
		t.Errorf("%d of jane's 60 are left after a restart", n)
	}
	if who := ownerOf(paths[0]); who != "jane" {
		t.Errorf("the first log is %s's", who)
	}
	for i := range len(paths) {
		write(fmt.Sprint("user", i), 60)
	}
	write(fmt.Sprint("user", len(paths)-1), 1000)
	for user, want := range map[string]int{"jane": 60, "user0": 60, "user10": 60} {
		if n := count(user); n != want {
			t.Errorf("%d of %s's %d are left", n, user, want)
		}
	}
	stop()
}

// RS-04: together the logs of those over their share take no more room than the log, where it can be divided.
func TestPart(t *testing.T) {
	for _, c := range []struct{ size, backups, wantSize, wantBackups int }{{50, 20, 2, 20}, {17, 1, 1, 1}, {1, 20, 1, 1}, {10, 20, 1, 11}} {
		if size, backups := part(c.size, c.backups, 17); size != c.wantSize || backups != c.wantBackups {
			t.Errorf("%+v: %d %d", c, size, backups)
		}
	}
}
