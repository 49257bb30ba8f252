// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The picture of the API server's rooms in docs/architecture.md has every package there is, but for what is generated.
func TestThePictureIsWhole(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, picture, found := strings.Cut(string(text), "## The API server's rooms")
	picture, _, ended := strings.Cut(picture, "\n## ")
	if !found || !ended {
		t.Fatal("docs/architecture.md has no picture of the API server's rooms")
	}
	rooms, err := os.ReadDir(filepath.Join(root, "internal/api"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, e := range rooms {
		if !e.IsDir() || e.Name() == "openapi" || e.Name() == "testdata" {
			continue
		}
		seen++
		if !regexp.MustCompile(`\b` + e.Name() + `\b`).MatchString(picture) {
			t.Errorf("internal/api/%s is not in the picture", e.Name())
		}
	}
	if seen < 20 {
		t.Errorf("only %d packages were looked for", seen)
	}
}

// What CONTRIBUTING.md calls a file or folder of ours is one.
func TestContributingNamesWhatIsThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:internal|cmd|tools|test|docs|toolbox)/[\\w./-]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 50 {
		t.Fatalf("only %d paths are named", len(named))
	}
	for _, m := range named {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(m[1], "/...")))); err != nil {
			t.Errorf("CONTRIBUTING.md: %v", err)
		}
	}
}
