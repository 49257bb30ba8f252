// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/statefile"
)

// fileName is that of a record in its pod's folder.
const fileName = "pod.json"

// Record is one pod as its node saw it last.
type Record struct {
	Store string      `json:"store"` // id of the store that it came from
	Pod   *corev1.Pod `json:"pod"`   // nil: the pod's folder has no record that can be read
	UID   types.UID   `json:"-"`     // its folder's name
}

// Name is namespace and name, or what else the pod can be called by.
func (r Record) Name() string {
	if r.Pod == nil {
		return "uid " + string(r.UID)
	}
	return r.Pod.Namespace + "/" + r.Pod.Name
}

// Write keeps a record in a pod's folder. A pod without one has nothing on the node yet, or nothing any more: it gets
// no record. The file is not synced to disk: it is replaced in one step, and what it says is also in the store.
func Write(folder string, r Record) error {
	if _, err := os.Stat(folder); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	err := statefile.Write(filepath.Join(folder, fileName), r)
	if errors.Is(err, fs.ErrNotExist) { // the folder has gone meanwhile
		return nil
	}
	return err
}

// List returns a record for every pod that has a folder on the node.
func List(pods string) ([]Record, error) {
	entries, err := os.ReadDir(pods)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		r := Record{UID: types.UID(e.Name())}
		text, err := os.ReadFile(filepath.Join(pods, e.Name(), fileName))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if json.Unmarshal(text, &r) != nil || r.Pod == nil || r.Pod.UID != r.UID {
			r.Pod = nil
		}
		all = append(all, r)
	}
	return all, nil
}
