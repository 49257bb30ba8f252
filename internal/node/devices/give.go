// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/wherryproject/wherry/internal/node/devices/grant"
	"github.com/wherryproject/wherry/internal/node/kubeletsocket"
	"github.com/wherryproject/wherry/internal/podspec"
)

// callTimeout is how long a plug-in may take to answer.
const callTimeout = 30 * time.Second

// defaultPatience is [Config.Patience].
const defaultPatience = 10 * time.Second

// Give gives a container the devices that it asks for, those that it has already or new ones, and says what the
// runtime is to make of them. What nobody has registered is none of it: such a resource is counted only. The pod's
// folder must be there.
func (m *Manager) Give(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (*Given, error) {
	var answers []*plugin.ContainerAllocateResponse
	for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
		q := c.Resources.Limits[name]
		if !m.knows(string(name)) || q.Value() <= 0 {
			continue
		}
		answer, err := m.giveOne(ctx, pod, c.Name, string(name), int(q.Value()))
		if err != nil {
			m.mu.Lock()
			m.waiting[pod.UID] = true
			m.mu.Unlock()
			return nil, err
		}
		answers = append(answers, answer)
	}
	return given(answers)
}

func (m *Manager) knows(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resources[name] != nil
}

// giveOne gives a container devices of one resource.
func (m *Manager) giveOne(ctx context.Context, pod *corev1.Pod, container, name string,
	need int) (*plugin.ContainerAllocateResponse, error) {
	m.mu.Lock()
	has := m.pods[pod.UID].get(container, name)
	away := m.resources[name].client == nil
	m.mu.Unlock()
	if has.Answer != nil && away && !has.PreStart { // it needs nothing of its plug-in now
		return has.answer()
	}
	client, options, err := m.connected(ctx, name)
	if err != nil {
		return nil, err
	}
	if has.Answer == nil {
		if has, err = m.allocate(ctx, pod, container, name, need, client, options); err != nil {
			return nil, err
		}
	}
	if options.GetPreStartRequired() {
		ctx, cancel := context.WithTimeout(ctx, plugin.KubeletPreStartContainerRPCTimeoutInSecs*time.Second)
		defer cancel()
		if _, err := client.PreStartContainer(ctx,
			&plugin.PreStartContainerRequest{DevicesIds: has.IDs}); err != nil {
			return nil, fmt.Errorf("device plug-in PreStartContainer rpc failed with err: %w", err)
		}
	}
	return has.answer()
}

// connected waits a moment for a plug-in that is away.
func (m *Manager) connected(ctx context.Context, name string) (plugin.DevicePluginClient, *plugin.DevicePluginOptions,
	error) {
	over := time.NewTimer(cmp.Or(m.cfg.Patience, defaultPatience))
	defer over.Stop()
	for {
		m.mu.Lock()
		d, news := m.resources[name], m.news
		client, options := d.client, d.options
		m.mu.Unlock()
		if client != nil {
			return client, options, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-over.C:
			return nil, nil,
				fmt.Errorf("the device plug-in of %s is not there: the container waits until it registers at %s",
					name, filepath.Join(m.cfg.Folder, kubeletsocket.Name))
		case <-news:
		}
	}
}

// allocate chooses devices for a container, writes them down, and asks the plug-in how the container gets them.
func (m *Manager) allocate(ctx context.Context, pod *corev1.Pod, container, name string, need int,
	client plugin.DevicePluginClient, options *plugin.DevicePluginOptions) (holding, error) {
	ids, err := m.choose(ctx, pod, container, name, need, client, options)
	if err != nil {
		return holding{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := client.Allocate(ctx, &plugin.AllocateRequest{
		ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: ids}}})
	if err != nil {
		return holding{}, fmt.Errorf("the device plug-in of %s does not give %v: %w", name, ids, err)
	}
	if n := len(r.GetContainerResponses()); n != 1 {
		return holding{}, fmt.Errorf("the device plug-in of %s gave %d answers for one container", name, n)
	}
	return m.keep(pod.UID, container, name, ids, r.GetContainerResponses()[0], options.GetPreStartRequired())
}

// choose decides which devices it is to be. Nobody else chooses of the same resource meanwhile.
func (m *Manager) choose(ctx context.Context, pod *corev1.Pod, container, name string, need int,
	client plugin.DevicePluginClient, options *plugin.DevicePluginOptions) ([]string, error) {
	m.mu.Lock()
	turn := m.resources[name].turn
	m.mu.Unlock()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	offer, err := grant.Look(m.request(pod, container, name, need))
	if err != nil {
		return nil, fmt.Errorf("%w; the container waits until devices come free", err)
	}
	var preferred []string
	if options.GetGetPreferredAllocationAvailable() && offer.Choice() {
		preferred = m.preferred(ctx, name, offer, client)
	}
	ids := offer.Choose(preferred)
	_, err = m.keep(pod.UID, container, name, ids, nil, false)
	return ids, err
}

func (m *Manager) request(pod *corev1.Pod, container, name string, need int) grant.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := grant.Request{Resource: name, Need: need, Devices: m.resources[name].list, Taken: map[string]bool{},
		Pod: grant.Held{}, Before: podspec.EndedBefore(&pod.Spec, container), Container: container}
	own := m.pods[pod.UID].get(container, name)
	w.Near = own.Near
	for uid, h := range m.pods {
		for c, has := range h {
			if uid == pod.UID && has[name].Reserved &&
				(c == container || slices.Contains(podspec.EndedBefore(&pod.Spec, c), container)) {
				continue // it, or one that takes over from it, may as well have another that is as near
			}
			ids := has[name].IDs
			if uid == pod.UID {
				w.Pod[c] = ids
				continue
			}
			for _, id := range ids {
				w.Taken[id] = true
			}
		}
	}
	return w
}

// preferred asks the plug-in which devices would go well together; nil if it does not say.
func (m *Manager) preferred(ctx context.Context, name string, o grant.Offer,
	client plugin.DevicePluginClient) []string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := client.GetPreferredAllocation(ctx, &plugin.PreferredAllocationRequest{
		ContainerRequests: []*plugin.ContainerPreferredAllocationRequest{{AvailableDeviceIDs: o.Free,
			MustIncludeDeviceIDs: o.Musts(), AllocationSize: int32(o.Need)}}})
	if err != nil || len(r.GetContainerResponses()) != 1 {
		m.cfg.Logger.Warn("a device plug-in does not say which devices it prefers", "resource", name, "err", err)
		return nil
	}
	return r.GetContainerResponses()[0].GetDeviceIDs()
}

// keep writes down what a container has, and then remembers it.
func (m *Manager) keep(uid types.UID, container, name string, ids []string,
	answer *plugin.ContainerAllocateResponse, preStart bool) (holding, error) {
	has, err := newHolding(ids, answer, preStart)
	if err != nil {
		return holding{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.pods[uid].with(container, name, has)
	if err := writeHoldings(filepath.Join(m.cfg.PodsFolder, string(uid), FileName), h); err != nil {
		return holding{}, fmt.Errorf("devices cannot be given before that is written down: %w", err)
	}
	m.pods[uid] = h
	return has, nil
}
