// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// target is one fuzz function.
type target struct {
	folder string // of its package, from the root
	name   string
}

func (t target) String() string { return t.folder + " " + t.name }

// targets finds the fuzz functions below folders, by package.
func targets(folders []string) ([][]target, error) {
	found := map[string][]target{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if e.IsDir() && e.Name() == "testdata" {
				return filepath.SkipDir
			}
			if e.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, name := range names(text) {
				folder := filepath.Dir(path)
				found[folder] = append(found[folder], target{folder, name})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var packages [][]target
	for _, one := range found {
		packages = append(packages, one)
	}
	slices.SortFunc(packages, func(a, b []target) int { return strings.Compare(a[0].folder, b[0].folder) })
	return packages, nil
}

// names are the fuzz functions of one file.
func names(text []byte) []string {
	var found []string
	for _, match := range regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`).FindAllSubmatch(text, -1) {
		found = append(found, string(match[1]))
	}
	return found
}

// module is the folder of the nearest go.mod above a folder.
func module(folder string) (string, error) {
	for at := folder; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", errors.New(folder + " is in no Go module")
		}
	}
}
