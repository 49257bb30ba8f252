// SPDX-License-Identifier: Apache-2.0

package allocated

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wherryproject/wherry/internal/podspec"
)

// fileName is that of the file in its pod's folder.
const fileName = "allocated.json"

// Write keeps what is set aside for a pod. A pod without a folder has nothing on the node: that is no error, and there
// is nothing to be kept.
func Write(folder string, r podspec.Resources) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fresh := filepath.Join(folder, "."+fileName)
	err = os.WriteFile(fresh, text, 0o600)
	if err == nil {
		err = os.Rename(fresh, filepath.Join(folder, fileName))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Read returns what was set aside for a pod; false where nothing is known.
func Read(folder string) (r podspec.Resources, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(folder, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || r.Containers == nil {
		return podspec.Resources{}, false, err
	}
	return r, true, nil
}
