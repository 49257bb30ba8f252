// SPDX-License-Identifier: Apache-2.0

package pullrecord

import (
	"os"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/imagename"
)

// FuzzStore finds files that are damaged, or were written by another version: what cannot be read is an error or nothing, and an access
// that is learnt is there afterwards.
func FuzzStore(f *testing.F) {
	f.Add([]byte(`{"id":"sha256:1","updated":"2026-01-01T00:00:00Z"}`), []byte(`{"image":"docker.io/library/a:latest"}`))
	f.Add([]byte("null"), []byte("null"))
	f.Add([]byte(`{"id":"sha256:1","pulls":{"":null}}`), []byte(`{"image":"A"}`))
	image, err := imagename.Parse("a")
	if err != nil {
		f.Fatal(err)
	}
	const id = "sha256:1"
	f.Fuzz(func(t *testing.T, record, pulling []byte) {
		s, err := Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for path, data := range map[string][]byte{file(s.pulled, id): record, file(s.pulling, image.Full): pulling} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _, _ = s.Look(image, id) // any error is fine
		if err := s.Conclude(map[string]string{image.Full: id}, time.Unix(1, 0)); err != nil {
			t.Error(err)
		}
		if err := s.Learn(image, id, Access{}, time.Unix(2, 0)); err != nil {
			t.Fatal(err)
		}
		if r, _, err := s.Look(image, id); err != nil || r == nil || r.ID != id {
			t.Errorf("%q: %+v, %v", record, r, err)
		}
		if err := s.Prune(nil, time.Unix(3, 0)); err != nil {
			t.Error(err)
		}
		if r, _, err := s.Look(image, id); err != nil || r != nil {
			t.Errorf("%q: after pruning %+v, %v", record, r, err)
		}
	})
}
