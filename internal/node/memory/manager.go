// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/numa/bank"
	"github.com/wherryproject/wherry/internal/node/statefile"
)

// FileName is that of the file in a pod's folder that says what the pod has.
const FileName = "memory.json"

// kept is what a pod has.
type kept struct {
	Containers bank.Held  `json:"containers"`
	Charge     bank.Taken `json:"charge"`
}

// Config is what a Manager works with.
type Config struct {
	// nil: memory is not given by nodes any more, and what an earlier process gave is taken back
	Machine    bank.Machine
	PodsFolder string // holds one folder for each pod
	Logger     *slog.Logger
}

// Manager knows who has which memory. Safe for concurrent use.
type Manager struct {
	cfg Config

	mu   sync.Mutex
	pods map[types.UID]kept
}

// New makes a Manager, with what an earlier process has written down. A pod that has memory of nodes that the machine
// does not have any more has none: its containers run on all nodes from their next start on.
func New(c Config) (*Manager, error) {
	m := &Manager{cfg: c, pods: map[types.UID]kept{}}
	files, err := filepath.Glob(filepath.Join(c.PodsFolder, "*", FileName))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if c.Machine == nil {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			continue
		}
		var k kept
		if err := statefile.Read(file, &k); err != nil { // the machine has lost power, and then nothing of the pod runs
			c.Logger.Warn("cannot read which memory a pod has: its containers may use that of all NUMA nodes", "err",
				err)
			continue
		}
		if why := k.wrong(c.Machine); why != nil {
			c.Logger.Warn("a pod has memory that it may not have any more: its containers may use that of all NUMA nodes",
				"file", file, "err", why)
			continue
		}
		m.pods[types.UID(filepath.Base(filepath.Dir(file)))] = k
	}
	return m, nil
}

// wrong says why a machine cannot have given it.
func (k kept) wrong(m bank.Machine) error {
	for container, share := range k.Containers {
		if share.Nodes == 0 || !share.Nodes.Within(m.Nodes()) {
			return fmt.Errorf("container %s has some of NUMA nodes %s, the machine has %s", container, share.Nodes,
				m.Nodes())
		}
	}
	for node := range k.Charge.Of {
		if m[node] == nil {
			return fmt.Errorf("the pod has some of NUMA node %d, the machine has %s", node, m.Nodes())
		}
	}
	return nil
}

// Taken is what all pods but one have.
func (m *Manager) Taken(but types.UID) (out bank.Taken) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, k := range m.pods {
		if uid != but {
			out = out.And(k.Charge)
		}
	}
	return out
}

// Keep writes down what a pod has. The pod's folder must be there.
func (m *Manager) Keep(uid types.UID, containers bank.Held, charge bank.Taken) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := kept{containers, charge}
	if err := statefile.Write(filepath.Join(m.cfg.PodsFolder, string(uid), FileName), k); err != nil {
		return fmt.Errorf("memory cannot be given before that is written down: %w", err)
	}
	m.pods[uid] = k
	return nil
}

// Of is what a pod's containers have.
func (m *Manager) Of(uid types.UID) bank.Held {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.pods[uid].Containers)
}

// Nodes lists the NUMA nodes whose memory a container may use, as cgroups want it; "" for all.
func (m *Manager) Nodes(uid types.UID, container string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pods[uid].Containers[container].Nodes.String()
}

// Release gives back what a pod has: it has ended, or is gone.
func (m *Manager) Release(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, uid)
}

// Machine is what there is for pods; nil: memory is not given by nodes.
func (m *Manager) Machine() bank.Machine { return m.cfg.Machine }
