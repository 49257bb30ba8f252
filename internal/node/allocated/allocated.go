// SPDX-License-Identifier: Apache-2.0

package allocated

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/wherryproject/wherry/internal/node/statefile"
	"github.com/wherryproject/wherry/internal/podspec"
)

// fileName is that of the file in its pod's folder.
const fileName = "allocated.json"

// Write keeps what is set aside for a pod. A pod without a folder has nothing on the node: that is no error, and there
// is nothing to be kept.
func Write(folder string, r podspec.Resources) error {
	err := statefile.Write(filepath.Join(folder, fileName), r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Read returns what was set aside for a pod; false where nothing is known.
func Read(folder string) (r podspec.Resources, ok bool, err error) {
	err = statefile.Read(filepath.Join(folder, fileName), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err != nil || r.Containers == nil {
		return podspec.Resources{}, false, err
	}
	return r, true, nil
}
