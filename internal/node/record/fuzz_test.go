// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// FuzzList: whatever the record of a pod holds, the pod is listed: as itself, or as one without a record that can be read. None is taken for
// another, and none hides that there is a pod. What can be read is the same when it is written again.
func FuzzList(f *testing.F) {
	for _, text := range []string{
		`{"store":"s","pod":{"metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"7"}}}`, `{"store":"s","pod":{"metadata":{"uid":"v"}}}`, `{"pod":null}`, `{`, ``, `null`, `[]`,
		`{"store":"s","pod":{"metadata":{"uid":"u","resourceVersion":"-99999999999999999999"}}}`, `{"pod":{"metadata":{"uid":"u"}},"pod":5}`, `{"UID":"x","pod":{"metadata":{"uid":"u"},"spec":{"containers":[null]}}}`,
	} {
		f.Add([]byte(text), "s", int64(5))
	}
	f.Fuzz(func(t *testing.T, text []byte, store string, revision int64) {
		pods := t.TempDir()
		folder := filepath.Join(pods, "u")
		file := filepath.Join(folder, fileName)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := List(pods)
		if err != nil || len(all) != 1 || all[0].UID != "u" || all[0].Name() == "" || all[0].Pod != nil && all[0].Pod.UID != "u" {
			t.Fatalf("listed: %+v, %v", all, err)
		}
		if suspects := Suspects(all, Store{Fresh: true}); len(suspects) != 1 || len(Unknown(suspects, map[types.UID]bool{"u": true})) != 0 {
			t.Errorf("an empty store knows %+v", all)
		}
		if Newest(all) < 0 {
			t.Errorf("the newest is %d", Newest(all))
		}
		if len(Suspects(all, Store{ID: store, Revision: revision})) > 0 && all[0].Pod == nil {
			t.Errorf("what cannot be read is suspected: %q", text)
		}
		if all[0].Pod == nil {
			return
		}
		if err := Write(folder, all[0]); err != nil {
			t.Fatal(err)
		}
		first, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		again, err := List(pods)
		if err != nil || len(again) != 1 || again[0].Pod == nil || again[0].Store != all[0].Store {
			t.Fatalf("written and read again: %+v, %v", again, err)
		}
		if err := Write(folder, again[0]); err != nil {
			t.Fatal(err)
		}
		if second, err := os.ReadFile(file); err != nil || string(second) != string(first) {
			t.Errorf("%s is then %s, %v", first, second, err)
		}
	})
}
