// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/check/lines"
)

// wide are the folders whose lines are not broken yet.
func wide() []string {
	return []string{"internal/api", "internal/cli/session", "internal/cri", "internal/node/httpapi", "internal/podspec",
		"internal/runtime", "internal/server", "internal/store"}
}

// TestLinesAreNotTooLong: lines of code fit into half a screen, beside others. Long strings stay, and so do tests, which are tables.
func TestLinesAreNotTooLong(t *testing.T) {
	checked := 0
	for _, f := range goFiles(t) {
		under := func(dir string) bool { return strings.HasPrefix(f.path, dir+"/") }
		if f.test() || f.generated() || !under("internal") || slices.ContainsFunc(wide(), under) {
			continue
		}
		checked++
		if text, err := lines.Broken(f.text); err != nil || !bytes.Equal(text, f.text) {
			t.Errorf("%s has lines of more than 120 columns: go run ./tools/lines %[1]s (%v)", f.path, err)
		}
	}
	if checked < 100 {
		t.Errorf("only %d files checked", checked)
	}
}
