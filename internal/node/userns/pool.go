// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/node/statefile"
)

// Length is how many IDs a pod has.
const Length = 1 << 16

// fileName is that of the file in its pod's folder.
const fileName = "userns.json"

// Range is the IDs of the machine that a pod's IDs 0 to Length-1 are.
type Range struct {
	First uint32 `json:"first"`
}

// Options are a range in the words of the runtime.
func (r Range) Options() *runtimeapi.UserNamespace {
	return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: r.Mappings(), Gids: r.Mappings()}
}

// Mappings are the one mapping that a range is; mounts are seen through it too.
func (r Range) Mappings() []*runtimeapi.IDMapping {
	return []*runtimeapi.IDMapping{{HostId: r.First, ContainerId: 0, Length: Length}}
}

// Pool gives out the ranges of a node. Safe for concurrent use.
type Pool struct {
	folder string // has one folder for each pod
	allow  []uint32
	mu     sync.Mutex
}

// NewPool makes the pool of a node whose pods have their folders in folder, within the shares of IDs that the texts of
// /etc/subuid and /etc/subgid give.
func NewPool(folder string, subuid, subgid []byte) *Pool {
	return &Pool{folder: folder, allow: allowed(subuid, subgid)}
}

// Take returns the range of a pod, whose folder must be there.
func (p *Pool) Take(uid string) (Range, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, ok, err := p.read(uid)
	if ok || err != nil {
		return own, err
	}
	entries, err := os.ReadDir(p.folder)
	if err != nil {
		return Range{}, fmt.Errorf("user namespaces of pods: %w", err)
	}
	taken := map[uint32]bool{}
	for _, e := range entries {
		other, ok, err := p.read(e.Name())
		if err != nil {
			return Range{}, err
		}
		if ok {
			taken[other.First] = true
		}
	}
	i := slices.IndexFunc(p.allow, func(first uint32) bool { return !taken[first] })
	if i < 0 {
		return Range{}, fmt.Errorf("no user IDs are left for a user namespace: %d pods have all that /etc/subuid and "+
			"/etc/subgid leave, %d IDs each; give the user kubelet more there, or set hostUsers to true",
			len(taken), Length)
	}
	own = Range{First: p.allow[i]}
	return own, p.write(uid, own)
}

// read returns the range that a pod has; false where it has none.
func (p *Pool) read(uid string) (r Range, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(p.folder, uid, fileName))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotFolder):
		return r, false, nil
	case err != nil:
		return r, false, fmt.Errorf("user namespace of pod %s: %w", uid, err)
	}
	if json.Unmarshal(text, &r) != nil || r.First == 0 || r.First%Length != 0 {
		return Range{}, false, nil
	}
	return r, true, nil
}

func (p *Pool) write(uid string, r Range) error {
	if err := statefile.Write(filepath.Join(p.folder, uid, fileName), r); err != nil {
		return fmt.Errorf("user namespace of pod %s: %w", uid, err)
	}
	return nil
}
