// SPDX-License-Identifier: Apache-2.0

package check

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a document leads to in the repository is there.
func TestLinksLeadSomewhere(t *testing.T) {
	var pages []string
	for _, at := range []string{"*.md", "docs"} {
		found, err := filepath.Glob(filepath.Join(root, at))
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range found {
			if err := filepath.WalkDir(each, func(path string, _ fs.DirEntry, err error) error {
				if strings.HasSuffix(path, ".md") {
					pages = append(pages, path)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	link, seen := regexp.MustCompile(`\]\(([^()\s]+)\)`), 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to, _, _ := strings.Cut(m[1], "#")
			if to == "" || strings.Contains(to, ":") { // the page itself, or elsewhere
				continue
			}
			seen++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(to))); err != nil {
				t.Errorf("%s leads to %s: %v", page, m[1], err)
			}
		}
	}
	if seen < 200 {
		t.Errorf("only %d links were found", seen)
	}
}
