// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/devices/grant"
)

// Health is what a container's status shows of its devices, by container (KEP-4680). A device that its plug-in does not
// report, or whose plug-in is away, is not known to be either.
func (m *Manager) Health(uid types.UID) map[string][]corev1.ResourceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pods[uid]) == 0 {
		return nil
	}
	out := map[string][]corev1.ResourceStatus{}
	for container, has := range m.pods[uid] {
		for _, name := range slices.Sorted(maps.Keys(has)) {
			s := corev1.ResourceStatus{Name: corev1.ResourceName(name)}
			for _, id := range has[name].IDs {
				s.Resources = append(s.Resources, corev1.ResourceHealth{ResourceID: corev1.ResourceID(id),
					Health: m.healthOf(name, id)})
			}
			out[container] = append(out[container], s)
		}
	}
	return out
}

// healthOf is called with the lock held.
func (m *Manager) healthOf(name, id string) corev1.ResourceHealthStatus {
	d := m.resources[name]
	if d == nil || d.client == nil {
		return corev1.ResourceHealthStatusUnknown
	}
	for _, dev := range d.list {
		switch {
		case dev.ID != id:
		case dev.Healthy:
			return corev1.ResourceHealthStatusHealthy
		default:
			return corev1.ResourceHealthStatusUnhealthy
		}
	}
	return corev1.ResourceHealthStatusUnknown
}

// Share is some devices of one resource on the same NUMA nodes.
type Share struct {
	Resource string
	IDs      []string
	NUMA     []int64
}

// Held are the devices that a pod has, by container.
func (m *Manager) Held(uid types.UID) map[string][]Share {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string][]Share{}
	for container, has := range m.pods[uid] {
		for _, name := range slices.Sorted(maps.Keys(has)) {
			var known []grant.Device
			if d := m.resources[name]; d != nil {
				known = d.list
			}
			out[container] = append(out[container], shares(name, known, has[name].IDs)...)
		}
	}
	return out
}

// Allocatable are the healthy devices of the node, whoever has them.
func (m *Manager) Allocatable() (out []Share) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.resources)) {
		d := m.resources[name]
		if d.client == nil {
			continue
		}
		var ids []string
		for _, dev := range d.list {
			if dev.Healthy {
				ids = append(ids, dev.ID)
			}
		}
		out = append(out, shares(name, d.list, ids)...)
	}
	return out
}

// shares groups devices by their NUMA nodes.
func shares(name string, known []grant.Device, ids []string) (out []Share) {
	for _, id := range ids {
		numa := grant.Nodes(known, []string{id})
		at := slices.IndexFunc(out, func(s Share) bool { return slices.Equal(s.NUMA, numa) })
		if at < 0 {
			out, at = append(out, Share{Resource: name, NUMA: numa}), len(out)
		}
		out[at].IDs = append(out[at].IDs, id)
	}
	return out
}
