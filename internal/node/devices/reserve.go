// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/numa/place"
)

// Facts are the devices that there are, by resource, and which of them pods have.
func (m *Manager) Facts() map[string]place.Devices {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]place.Devices{}
	for name, d := range m.resources {
		out[name] = place.Devices{List: slices.Clone(d.list), Taken: map[string]bool{}}
		if d.client == nil {
			for i := range out[name].List { // nobody is given one of them now
				out[name].List[i].Healthy = false
			}
		}
	}
	for _, h := range m.pods {
		for _, has := range h {
			for name, one := range has {
				for _, id := range one.IDs {
					if d, known := out[name]; known {
						d.Taken[id] = true
					}
				}
			}
		}
	}
	return out
}

// Reserve writes down which devices a pod's containers are to have when they start, before the pod is let in. It fails
// where somebody has got some of them meanwhile. The pod's folder must be there.
func (m *Manager) Reserve(uid types.UID, containers map[string]map[string]place.Reserved) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := maps.Clone(m.pods[uid])
	for container, has := range containers {
		for name, r := range has {
			if id := m.takenOf(uid, name, r.IDs); id != "" {
				return fmt.Errorf("container %s: another pod has got device %s of %s meanwhile", container, id, name)
			}
			h = h.with(container, name, holding{IDs: r.IDs, Reserved: true, Near: r.Near})
		}
	}
	if err := writeHoldings(filepath.Join(m.cfg.PodsFolder, string(uid), FileName), h); err != nil {
		return fmt.Errorf("devices cannot be given before that is written down: %w", err)
	}
	m.pods[uid] = h
	return nil
}

// takenOf names one of some devices that another pod has. Called with the lock held.
func (m *Manager) takenOf(uid types.UID, name string, ids []string) string {
	for other, h := range m.pods {
		for _, has := range h {
			for _, id := range has[name].IDs {
				if other != uid && slices.Contains(ids, id) {
					return id
				}
			}
		}
	}
	return ""
}
