// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// unfinished are the names of files that are being written, beside those that they will replace: of the server's own,
// of package pki's and of the helper programs (os.CreateTemp).
var unfinished = regexp.MustCompile(`^\.[a-z].*[.-][0-9]+$`)

// sweepUnfinished removes what a server that was killed had begun to write: nobody else does, and it may be half a key.
// Only who holds the folder may call it.
func sweepUnfinished(dataDir string) error {
	var errs []error
	for _, dir := range []string{dataDir, filepath.Join(dataDir, "pki"), filepath.Join(dataDir, "bin")} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() && unfinished.MatchString(e.Name()) {
				errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
			}
		}
	}
	return errors.Join(errs...)
}
