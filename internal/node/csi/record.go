// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/csi/terms"
	"github.com/wherryproject/wherry/internal/node/statefile"
)

// fileName is that of the file in its pod's folder.
const fileName = "csi.json"

// use is what a driver was asked for, for one volume of a pod.
type use struct {
	Driver string `json:"driver"`
	Handle string `json:"handle"`
	Name   string `json:"name"`            // of the persistent volume, or of the pod's volume
	Claim  string `json:"claim,omitempty"` // "": inline
	// Staging is where it is staged, Target where it is published; "": the driver was not asked to.
	Staging string `json:"staging,omitempty"`
	Target  string `json:"target,omitempty"`
	// Staged and Published say that the driver has done so, since the machine's start that Boot names; Gone that it has
	// taken the publication back.
	Staged    bool   `json:"staged,omitempty"`
	Published bool   `json:"published,omitempty"`
	Gone      bool   `json:"gone,omitempty"`
	Boot      string `json:"boot"`

	Attach    bool `json:"attach,omitempty"` // it is in the node's list of volumes in use
	Block     bool `json:"block,omitempty"`
	ReadOnly  bool `json:"readOnly,omitempty"`
	Republish bool `json:"republish,omitempty"`
	Group     bool `json:"group,omitempty"` // the node gives its files to the pod's fsGroup
}

func (u *use) unique() corev1.UniqueVolumeName { return terms.UniqueName(u.Driver, u.Handle) }

// same reports whether two uses are of one volume.
func (u *use) same(o *use) bool { return u.Driver == o.Driver && u.Handle == o.Handle }

// uses are those of a pod, by its volumes. They are not changed: with and without make others.
type uses map[string]use

func (s uses) with(volume string, u use) uses {
	out := maps.Clone(s)
	if out == nil {
		out = uses{}
	}
	out[volume] = u
	return out
}

func (s uses) without(volume string) uses {
	out := maps.Clone(s)
	delete(out, volume)
	return out
}

// parse reads a record.
func parse(text []byte) (uses, error) {
	var s uses
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	for volume, u := range s {
		for _, at := range []string{u.Staging, u.Target} {
			if at != "" && (!filepath.IsAbs(at) || filepath.Clean(at) != at) {
				return nil, fmt.Errorf("volume %q: %q is not a valid path", volume, at)
			}
		}
		if u.Driver == "" || u.Handle == "" {
			return nil, fmt.Errorf("volume %q: it has no driver or no handle", volume)
		}
	}
	return s, nil
}

// readAll reads what was written down for all pods. What cannot be read is logged and skipped.
func (m *Manager) readAll() error {
	files, err := filepath.Glob(filepath.Join(m.cfg.PodsFolder, "*", fileName))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var s uses
		if err == nil {
			s, err = parse(text)
		}
		if err != nil { // the machine has lost power, and then nothing is mounted
			m.cfg.Logger.Warn("cannot read which volumes of CSI drivers a pod has", "file", file, "err", err)
			continue
		}
		m.uses[types.UID(filepath.Base(filepath.Dir(file)))] = s
	}
	return nil
}

// keep writes down a use, and then remembers it.
func (m *Manager) keep(uid types.UID, volume string, u use) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.uses[uid].with(volume, u)
	if err := statefile.Write(m.file(uid), now); err != nil {
		return fmt.Errorf("the volume cannot be asked for before that is written down: %w", err)
	}
	m.uses[uid] = now
	return nil
}

// drop takes a use out of the record.
func (m *Manager) drop(uid types.UID, volume string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.uses[uid].without(volume)
	var err error
	if len(now) > 0 {
		err = statefile.Write(m.file(uid), now)
	} else if err = os.Remove(m.file(uid)); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	m.uses[uid] = now
	if len(now) == 0 {
		delete(m.uses, uid)
	}
	return nil
}

func (m *Manager) file(uid types.UID) string {
	return filepath.Join(m.cfg.PodsFolder, string(uid), fileName)
}

func (m *Manager) use(uid types.UID, volume string) (use, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u, has := m.uses[uid][volume]
	return u, has
}

// stagedBy reports whether somebody else relies on a volume's staging: whether it was asked for, and whether the driver
// has answered. Called with the volume's turn.
func (m *Manager) stagedBy(uid types.UID, volume string, u *use) (asked, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, s := range m.uses {
		for name, o := range s {
			if id == uid && name == volume || !o.same(u) || o.Staging == "" || o.Gone || o.Boot != m.cfg.Boot {
				continue
			}
			asked, done = true, done || o.Staged
		}
	}
	return asked, done
}
