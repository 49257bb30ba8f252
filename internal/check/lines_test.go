// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"testing"

	"github.com/wherryproject/wherry/internal/check/lines"
)

// TestLinesAreNotTooLong: lines of code fit into half a screen, beside others. What cannot be broken without making it worse
// to read or to search for stays: long strings and comments' drawings; tests, which are tables, are not looked at.
func TestLinesAreNotTooLong(t *testing.T) {
	checked := 0
	for _, f := range goFiles(t) {
		if f.test() || f.generated() {
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
