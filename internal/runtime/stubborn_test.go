// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// RS-05: a lost container that cannot be deleted does not hold up the end of every sandbox: it is tried again ever more seldom.
func TestStubbornContainersAreLeftForAWhile(t *testing.T) {
	d := dirsOf(t.TempDir())
	calls := filepath.Join(d.data, "calls")
	for path, text := range map[string]string{
		filepath.Join(d.bin, bundle.Runc):                 "#!/bin/sh\nfor id; do :; done\necho $id >>" + calls + "\n[ $id = good ] && exec rm -r " + d.runc + "/k8s.io/good\nexit 1\n",
		filepath.Join(d.runc, Namespace, "bad", "state"):  "",
		filepath.Join(d.runc, Namespace, "good", "state"): "",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := &Runtime{dirs: d, engine: engine{log: slog.New(slog.DiscardHandler), tasks: filepath.Join(d.run, "tasks")}}
	if err := r.reapLost(t.Context(), false); err == nil || !strings.Contains(err.Error(), "container bad") {
		t.Errorf("the first try: %v", err)
	}
	for range 3 {
		if err := r.reapLost(t.Context(), false); err != nil {
			t.Errorf("soon after: %v", err)
		}
	}
	s := r.stubborn["bad"]
	r.stubborn["bad"] = stubborn{s.tries, time.Now()}
	if err := r.reapLost(t.Context(), false); err == nil {
		t.Error("after a while: not tried again")
	}
	text, err := os.ReadFile(calls)
	if got := strings.Join(strings.Fields(string(text)), " "); err != nil || got != "bad good bad" {
		t.Errorf("runc was called for %q (%v), want bad good bad", got, err)
	}
	pause := func(s stubborn) time.Duration { return s.failed(time.Time{}).until.Sub(time.Time{}) }
	for tries, want := range map[int]time.Duration{0: time.Minute, 1: 2 * time.Minute, 5: 32 * time.Minute, 6: time.Hour, 1000: time.Hour} {
		if got := pause(stubborn{tries: tries}); got != want {
			t.Errorf("after %d tries: %v, want %v", tries, got, want)
		}
	}
	if err := os.RemoveAll(filepath.Join(d.runc, Namespace, "bad")); err != nil {
		t.Fatal(err)
	}
	if err := r.reapLost(t.Context(), false); err != nil || len(r.stubborn) != 0 {
		t.Errorf("when it is gone: %v, %v remembered", err, r.stubborn)
	}
}
