// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/node/record"
)

// RS-07: what becomes of pods that the store does not know is said by somebody, for each of them, or the start is refused.
func TestDecide(t *testing.T) {
	known := record.Record{UID: "1", Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "known"}}}
	taken := record.Record{UID: "2", Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "taken"}}}
	bare := record.Record{UID: "3"}
	all, names := []record.Record{known, taken, bare}, map[string]bool{"a/taken": true}
	for name, tc := range map[string]struct {
		adopt, forget            bool
		adopted, forgotten, open int
	}{
		"nobody says":     {false, false, 0, 0, 3},
		"adopt":           {true, false, 1, 0, 2},
		"forget":          {false, true, 0, 3, 0},
		"adopt or forget": {true, true, 1, 2, 0},
	} {
		a := decide(all, names, tc.adopt, tc.forget)
		if len(a.adopt) != tc.adopted || len(a.forget) != tc.forgotten || len(a.open) != tc.open {
			t.Errorf("%s: %+v", name, a)
		}
	}
	a := decide(all, names, false, false)
	text := a.words("it is gone") + "\n" + a.ways("/srv/x", []backup.Kept{{Path: "/s/1", Created: time.Unix(0, 0).UTC()}}, "")
	for _, want := range []string{"3 pods", "a/known", "uid 3", "server --data-dir /srv/x --adopt", "--forget", "restore --data-dir /srv/x --force /s/1", "1970-01-01"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

// RS-07, RS-14: a store that was restored from a snapshot is not to be restored from it again: that would be no way on.
func TestSnapshotIsNotOfferedAgain(t *testing.T) {
	newest, older := backup.Kept{Path: "/s/new", Created: time.Unix(7200, 0).UTC()}, backup.Kept{Path: "/s/old", Created: time.Unix(0, 0).UTC()}
	store := t.TempDir()
	if err := markRestored(store, "/else/new"); err != nil {
		t.Fatal(err)
	}
	from := restoredFrom(store)
	for name, tc := range map[string]struct {
		kept       []backup.Kept
		want, lack string
	}{
		"another is there":   {[]backup.Kept{newest, older}, "restore --data-dir /d --force /s/old", "/s/new"},
		"it is the only one": {[]backup.Kept{newest}, "restore --data-dir /d --force FILE", "/s/new"},
		"it is not there":    {[]backup.Kept{older}, "to go back to the newest snapshot", "restored from"},
	} {
		got := answer{}.ways("/d", tc.kept, from)
		if !strings.Contains(got, tc.want) || strings.Contains(got, tc.lack) {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	if got := restoredFrom(t.TempDir()); got != "" {
		t.Errorf("a store that was not restored is from %q", got)
	}
}

// RS-07: what to do about a damaged store names what can be had back.
func TestWayBack(t *testing.T) {
	kept := []backup.Kept{{Path: "/s/new", Created: time.Unix(7200, 0).UTC()}, {Path: "/s/old"}}
	for name, tc := range map[string]struct {
		usable string
		kept   []backup.Kept
		want   []string
		not    string
	}{
		"database and snapshot": {"/d/etcd/db", kept, []string{"restore --force /d/etcd/db", "restore --force /s/new", "1970-01-01T02:00:00Z"}, "/s/old"},
		"snapshot":              {"", kept, []string{"restore --force /s/new"}, "FILE"},
		"nothing":               {"", nil, []string{"restore --force FILE", "move /var/lib/wherry/etcd away"}, "newest"},
	} {
		got := wayBack(DefaultDataDir, tc.usable, tc.kept)
		for _, w := range tc.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is not in:\n%s", name, w, got)
			}
		}
		if strings.Contains(got, tc.not) {
			t.Errorf("%s: %q is in:\n%s", name, tc.not, got)
		}
	}
}

// A disk that is nearly full is not filled by snapshots.
func TestNoRoom(t *testing.T) {
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		free, total, size uint64
		want              bool
	}{
		"plenty":     {10_000 * mib, 100_000 * mib, 100 * mib, true},
		"too little": {400 * mib, 100_000 * mib, 100 * mib, false},
		"just":       {456 * mib, 100_000 * mib, 100 * mib, true},
		"small disk": {70 * mib, 1000 * mib, 10 * mib, true},
		"full":       {0, 1000 * mib, 0, false},
	} {
		if got := noRoom(tc.free, tc.total, tc.size) == ""; got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
