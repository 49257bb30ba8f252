// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// mostRooms is how many packages a debug request may go through: more, and nobody finds his way.
const mostRooms = 20

// The walk of a debug request is a table in docs/architecture.md: a number, a package, which package hands the request to it or asks
// it (none where it comes from outside), and why it is there.
var walkRow = regexp.MustCompile("(?m)^\\| ([0-9]+) \\| `(internal/[a-z/]+)` \\| (?:`(internal/[a-z/]+)`|[^|`]*) \\| ([^|]+) \\|$")

// TestDebugWalk: the walk has few rooms, each is there, and none calls back into one that it was entered from: through an interface it
// could, which the compiler does not see.
func TestDebugWalk(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	imports := ownImports(goFiles(t))
	from := map[string]string{} // by whom a package is entered first
	rows := walkRow.FindAllStringSubmatch(string(text), -1)
	for i, row := range rows {
		to, by := row[2], row[3]
		if strconv.Itoa(i+1) != row[1] {
			t.Errorf("row %d has the number %s", i+1, row[1])
		}
		if _, there := imports[to]; !there {
			t.Errorf("row %d: there is no package %s", i+1, to)
		}
		if _, again := from[to]; again {
			t.Errorf("row %d: %s is on the walk already", i+1, to)
		}
		if _, known := from[by]; by != "" && !known {
			t.Errorf("row %d: %s is entered from %s, which comes later or never", i+1, to, by)
		}
		from[to] = by
		for ; by != ""; by = from[by] {
			if reaches(imports, to, by, map[string]bool{}) {
				t.Errorf("row %d: %s imports %s, from which it is entered", i+1, to, by)
			}
		}
	}
	if len(rows) == 0 || len(rows) > mostRooms {
		t.Errorf("a debug request goes through %d packages, want 1 to %d", len(rows), mostRooms)
	}
}

// ownImports are the packages of ours that each package imports, tests aside.
func ownImports(files []*file) map[string][]string {
	out := map[string][]string{}
	for dir, of := range packages(files) {
		out[dir] = nil
		for _, f := range of {
			for _, i := range f.imports() {
				if to, ours := strings.CutPrefix(i, module+"/"); ours {
					out[dir] = append(out[dir], to)
				}
			}
		}
	}
	return out
}

// reaches tells whether a package imports another one, by whatever way.
func reaches(imports map[string][]string, from, to string, seen map[string]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, next := range imports[from] {
		if next == to || reaches(imports, next, to, seen) {
			return true
		}
	}
	return false
}
