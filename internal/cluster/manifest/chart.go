// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// repository is where images of released versions are.
const repository = "ghcr.io/wherryproject/wherry"

// Image is the name of the image of a version of the program.
func Image(version string) string { return repository + ":" + Tag(version) }

// Tag is a version as the tag of an image, and as a label's value.
func Tag(version string) string {
	tag := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}, version)
	if len(tag) > 63 { // a label's value is no longer
		tag = tag[:63]
	}
	if tag = strings.Trim(tag, ".-_"); tag == "" {
		return "devel"
	}
	return tag
}

// Chart is the chart of a version of the program: its files by their paths in its folder, / between them.
func Chart(version string) (map[string][]byte, error) {
	chart := map[string][]byte{"Chart.yaml": chartYAML(version)}
	root, err := fs.Sub(files, "chart")
	if err != nil {
		return nil, err
	}
	return chart, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		chart[name], err = fs.ReadFile(root, name)
		return err
	})
}

func chartYAML(version string) []byte {
	return fmt.Appendf(nil, `# SPDX-License-Identifier: Apache-2.0

apiVersion: v2
name: wherry-debug
description: Debugging of pods with Wherry, by an aggregated API and an agent on each node
type: application
version: %q
appVersion: %q
kubeVersion: ">=1.30.0-0"
home: https://github.com/wherryproject/wherry
sources:
  - https://github.com/wherryproject/wherry
`, chartVersion(version), Tag(version))
}

// chartVersion is a version as Helm wants it: of the form that semver.org says, whatever the program was built from.
func chartVersion(version string) string {
	if v := "v" + strings.TrimPrefix(version, "v"); semver.IsValid(v) {
		return strings.TrimPrefix(semver.Canonical(v)+semver.Build(v), "v")
	}
	return "0.0.0-dev." + strings.NewReplacer("_", "-", ".", "-").Replace(Tag(version))
}

// WriteChart writes the chart into a folder, which must be empty or not be there: files of another chart would be part
// of this one.
func WriteChart(dir, version string) error {
	chart, err := Chart(version)
	if err != nil {
		return err
	}
	switch old, err := os.ReadDir(dir); {
	case err == nil && len(old) > 0:
		return fmt.Errorf("%s is not empty: name a folder that is, or that is not there yet", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	for name, text := range chart {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
