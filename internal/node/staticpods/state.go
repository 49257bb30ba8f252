// SPDX-License-Identifier: Apache-2.0

package staticpods

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// state is what is remembered of a pod.
type state struct {
	Place string      `json:"place"` // its manifest's file or URL
	Pod   *corev1.Pod `json:"pod"`   // with its status, and its deletion mark while it ends
}

const stateSuffix = ".json"

func stateFile(dir string, uid types.UID) string { return filepath.Join(dir, string(uid)+stateSuffix) }

// write replaces a pod's state in one step. It is not synced to disk: a machine that loses power begins its pods with
// an older status, or without one.
func (s *state) write(dir string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	file := stateFile(dir, s.Pod.UID)
	if err := os.WriteFile(file+".new", text, 0o600); err != nil { // it has what the pod's environment has
		return err
	}
	return os.Rename(file+".new", file)
}

// load reads the states in a folder. Those that cannot be read are returned by name.
func load(dir string) (all []*state, bad []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		uid, ok := strings.CutSuffix(e.Name(), stateSuffix)
		if !ok {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		s, err := parseState(text, types.UID(uid))
		if err != nil {
			bad = append(bad, e.Name())
			continue
		}
		all = append(all, s)
	}
	return all, bad, nil
}

func parseState(text []byte, uid types.UID) (*state, error) {
	s := &state{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, err
	}
	if s.Pod == nil || s.Pod.UID != uid || s.Pod.Name == "" {
		return nil, errors.New("is not the state of this pod")
	}
	return s, nil
}

// UIDs are those of the static pods that a node with this state folder has. They are in no API server.
func UIDs(dir string) (map[types.UID]bool, error) {
	all, _, err := load(dir)
	out := map[types.UID]bool{}
	for _, s := range all {
		out[s.Pod.UID] = true
	}
	return out, err
}
