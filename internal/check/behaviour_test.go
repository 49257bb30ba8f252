// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wherryproject/wherry/internal/check/rules"
)

// docs/behaviour.md promises to users; what it calls works must be proven.
func TestBehaviourPageTellsTheTruth(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/behaviour.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := rules.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	found, err := rules.Scan(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range page.Faults(found) {
		t.Error(f)
	}
	if len(page.Rules) < 113 {
		t.Errorf("the page has %d rules; none is ever taken off it", len(page.Rules))
	}
}
