// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces the file with what as JSON. Only root may read it: it may have what a pod's environment has. Its
// folder must be there: else the error is [io/fs.ErrNotExist].
func Write(file string, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	fresh := filepath.Join(filepath.Dir(file), "."+filepath.Base(file))
	if err := os.WriteFile(fresh, text, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, file)
}

// Read reads a file that Write has written. One that is not there is [io/fs.ErrNotExist]; what is no JSON, or that of
// something else, is named.
func Read(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
