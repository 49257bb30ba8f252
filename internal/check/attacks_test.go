// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wherryproject/wherry/internal/check/rules"
)

// docs/attacks.md says what holds against each attack; a test must repeat it. No attack is ever taken off the page.
func TestEveryAttackIsRepeated(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page, err := rules.ParseAttacks(read("docs/attacks.md"))
	if err != nil {
		t.Fatal(err)
	}
	behaviour, err := rules.Parse(read("docs/behaviour.md"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := rules.ScanAttacks(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range page.Faults(found, nil, behaviour) {
		t.Error(f)
	}
	if len(page.Attacks) < 106 {
		t.Errorf("the page has %d attacks; none is ever taken off it", len(page.Attacks))
	}
}
