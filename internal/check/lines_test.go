// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/check/lines"
)

// TestLinesAreNotTooLong: lines of code fit into half a screen, beside others. Long strings stay, and so do tests, which are tables.
func TestLinesAreNotTooLong(t *testing.T) {
	checked := 0
	for _, f := range goFiles(t) {
		under := func(dir string) bool { return strings.HasPrefix(f.path, dir+"/") }
		if f.test() || f.generated() || !under("internal") {
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
