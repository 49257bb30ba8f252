// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	_ "embed"
	"os"
	"path/filepath"
	"testing"

	"github.com/wherryproject/wherry/internal/check/guides"
)

//go:embed testdata/guides.txt
var guidesScript string

// TestGuides types every command of the README and of the guides as it stands there, as a person without rights who has sudo.
// testdata/guides.txt says what must come of each, in the guides' order; a command that is not in it fails the test.
func TestGuides(t *testing.T) {
	t.Parallel()
	desk := newDesk(t)
	pages, err := guides.Parse(guidesScript)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		t.Run(page.Path, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../..", page.Path))
			if err != nil {
				t.Fatal(err)
			}
			typed, err := page.Match(string(text))
			if err != nil {
				t.Fatal(err)
			}
			desk.sits(t)
			for i, s := range page.Steps {
				desk.does(t, stepOf(s), typed[i])
			}
		})
	}
}

// guideStep is a step of a guide's script as one of the tables of commands.
type guideStep struct {
	step
	kind  guides.Kind
	needs string // what must be on this machine for it, as [desk.has] knows it; empty: nothing
}

func stepOf(s guides.Step) guideStep {
	return guideStep{step{line: s.Line, run: s.Run, fails: s.Kind == guides.Refuses, wants: s.Wants}, s.Kind, s.Needs}
}
