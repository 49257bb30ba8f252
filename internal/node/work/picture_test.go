// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	pasts "github.com/wherryproject/wherry/internal/node/history"
	pictures "github.com/wherryproject/wherry/internal/timeline"
)

// What a person sees of a pod's life, from the workers' own words (SC-02, SC-09, PL-02): the scripts are those of
// testdata/timelines, the pictures stand in testdata/pictures.
func TestPictures(t *testing.T) {
	for _, name := range []string{"sidecar-order", "crash-loop", "agent-dies-sandboxing", "pull-backoff", "pause-killed", "delete-ignored"} {
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join("testdata", "timelines", name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			pod := parsePod(t, archive.Files[0].Data)
			actions, err := parseScript(string(archive.Files[1].Data))
			if err != nil {
				t.Fatal(err)
			}
			var got string
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t, pod)
				if s.history, err = pasts.New(pasts.Config{Dir: dir}, time.Now()); err != nil {
					t.Fatal(err)
				}
				s.play(actions)
				h, _, ok := s.history.Find(pod.Namespace, pod.Name, "", time.Now())
				if !ok {
					t.Fatal("nothing was noted")
				}
				got = pictures.Text(h, pictures.Options{Width: 120})
			})
			file := filepath.Join("testdata", "pictures", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || string(want) != got {
				t.Errorf("%v: the picture is not that of %s (run with -update and read the change):\n%s", err, file, got)
			}
		})
	}
}
