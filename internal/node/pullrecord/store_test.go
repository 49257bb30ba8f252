// SPDX-License-Identifier: Apache-2.0

package pullrecord

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func now() time.Time { return time.Unix(1_800_000_000, 0) }

func look(t *testing.T, s *Store, image, id string) (record *Record, begun bool) {
	t.Helper()
	record, begun, err := s.Look(ref(t, image), id)
	if err != nil {
		t.Fatal(err)
	}
	return record, begun
}

// TestStore proves RS-12: what was recorded of a pull is known after a restart, and only root can read it.
func TestStore(t *testing.T) {
	dir := t.TempDir()
	open := func() *Store {
		t.Helper()
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s, app := open(), ref(t, "r.example/app:1")
	if r, begun := look(t, s, app.Full, "sha256:1"); r != nil || begun {
		t.Errorf("before anything: %+v, %t", r, begun)
	}
	must(s.Begin(app))
	must(s.Begin(app))
	if _, begun := look(t, open(), app.Full, "sha256:1"); !begun {
		t.Error("the note of a pull is lost by a restart")
	}
	must(s.Failed(app))
	if _, begun := look(t, s, app.Full, "sha256:1"); !begun {
		t.Error("the note of one pull went with another")
	}
	secret := Secret{UID: "u", Namespace: "a", Name: "pull", Hash: "h"}
	must(s.Done(app, "sha256:1", Access{Secrets: []Secret{secret}}, now()))
	r, begun := look(t, open(), "r.example/app:other", "sha256:1")
	if begun || r == nil || len(r.Access["r.example/app"].Secrets) != 1 || r.Access["r.example/app"].Secrets[0] != secret {
		t.Errorf("after a restart: %+v, %t", r, begun)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, path := range append(files, filepath.Dir(files[0])) {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Look(app, "sha256:1"); err == nil {
		t.Error("a record that cannot be read is none")
	}
	must(s.Learn(app, "sha256:1", Access{Everyone: true}, now()))
	if r, _ := look(t, s, app.Full, "sha256:1"); !r.Access["r.example/app"].Everyone || len(r.Access["r.example/app"].Secrets) > 0 {
		t.Errorf("in place of one that could not be read: %+v", r)
	}

	must(s.Begin(ref(t, "r.example/left:1")))
	s.Left(ref(t, "r.example/left:1"))
	if _, begun := look(t, s, "r.example/left:1", "sha256:9"); !begun {
		t.Error("a pull that nobody waited for left no note")
	}
	must(s.Begin(ref(t, "r.example/left:1")))
	must(s.Failed(ref(t, "r.example/left:1")))
	if _, begun := look(t, s, "r.example/left:1", "sha256:9"); begun {
		t.Error("the next pull did not take the note away")
	}
}

// TestSettleAndPrune proves RS-12: a pull that a killed server began counts as one if its image is there, and a record goes with its image.
func TestSettleAndPrune(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, name := range []string{"r.example/came:1", "r.example/both:1@" + digest, "r.example/lost:1"} {
		if err := s.Begin(ref(t, name)); err != nil {
			t.Fatal(err)
		}
		s.Left(ref(t, name))
	}
	if err := os.WriteFile(filepath.Join(s.pulling, unfinished+"1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Conclude(map[string]string{"r.example/came:1": "sha256:1", "r.example/both@" + digest: "sha256:2"}, now()); err != nil {
		t.Fatal(err)
	}
	for id, name := range map[string]string{"sha256:1": "r.example/came:1", "sha256:2": "r.example/both:1"} {
		if r, _ := look(t, s, name, id); r == nil || r.Access[repository(ref(t, name))].Everyone {
			t.Errorf("%s, which is there: %+v", name, r)
		}
	}
	if r, begun := look(t, s, "r.example/lost:1", "sha256:3"); r != nil || begun {
		t.Errorf("a pull that came to nothing: %+v, %t", r, begun)
	}
	if files, _ := os.ReadDir(s.pulling); len(files) > 0 {
		t.Errorf("left: %v", files)
	}

	if err := s.Prune(map[string]bool{"sha256:1": true}, now()); err != nil {
		t.Fatal(err)
	}
	if r, _ := look(t, s, "r.example/both:1", "sha256:2"); r == nil {
		t.Error("a record was removed that is no older than the list")
	}
	if err := s.Prune(map[string]bool{"sha256:1": true}, now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if r, _ := look(t, s, "r.example/both:1", "sha256:2"); r != nil {
		t.Error("the record of an image that is gone stays")
	}
	if r, _ := look(t, s, "r.example/came:1", "sha256:1"); r == nil {
		t.Error("the record of an image that is there is gone")
	}
}
