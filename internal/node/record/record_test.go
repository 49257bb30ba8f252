// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func pod(uid, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n-" + uid, UID: types.UID(uid), ResourceVersion: version}}
}

// RS-07: a pod that its store has deleted in order is told from one that the store has forgotten.
func TestSuspects(t *testing.T) {
	from := func(store, version string) Record { return Record{Store: store, Pod: pod("u", version), UID: "u"} }
	now := Store{ID: "a", Revision: 100}
	for name, tc := range map[string]struct {
		r    Record
		s    Store
		want bool
	}{
		"deleted in order":              {from("a", "100"), now, false},
		"of another store":              {from("b", "5"), now, true},
		"of a later state":              {from("a", "101"), now, true},
		"no record":                     {Record{UID: "u"}, now, false},
		"no record, and no store":       {Record{UID: "u"}, Store{Fresh: true}, true},
		"of a store that is there anew": {from("a", "1"), Store{Fresh: true}, true},
		"recorded without a store":      {from("", "1"), now, true},
		"version is no number":          {from("a", "x"), now, false},
	} {
		got := Suspects([]Record{tc.r}, tc.s)
		if (len(got) == 1) != tc.want {
			t.Errorf("%s: %v", name, got)
		}
		if left := Unknown(got, map[types.UID]bool{"u": true}); len(left) > 0 {
			t.Errorf("%s: the store has it, and yet %v", name, left)
		}
		if left := Unknown(got, nil); len(left) != len(got) {
			t.Errorf("%s: the store does not have it, and yet %v", name, left)
		}
	}
}

func TestWriteAndList(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "gone"), Record{Store: "a", Pod: pod("gone", "1")}); err != nil {
		t.Errorf("a pod without a folder: %v", err)
	}
	for _, uid := range []string{"one", "none", "torn", "other"} {
		if err := os.Mkdir(filepath.Join(dir, uid), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for uid, p := range map[string]*corev1.Pod{"one": pod("one", "7"), "other": pod("somebody", "7")} {
		if err := Write(filepath.Join(dir, uid), Record{Store: "a", Pod: p}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "torn", fileName), []byte(`{"store":"a","pod":{`), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := List(dir)
	if err != nil || len(all) != 4 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, r := range all {
		if has := r.Pod != nil; has != (r.UID == "one") {
			t.Errorf("%s: %+v", r.UID, r)
		}
		if r.Pod != nil && (r.Store != "a" || r.Name() != "ns/n-one" || r.Pod.ResourceVersion != "7") {
			t.Errorf("%+v", r)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "one", fileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v", info, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "one")); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if all, err := List(filepath.Join(dir, "gone")); err != nil || len(all) != 0 {
		t.Errorf("no folder: %v, %v", all, err)
	}
}
