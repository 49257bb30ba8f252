// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Tend looks after a volume that is published, until it is taken back: it is made larger when its claim asks for it,
// and published again and again if its driver wants that. It can be repeated.
func (m *Manager) Tend(pod *corev1.Pod, volume string) {
	u, has := m.use(pod.UID, volume)
	if !has || u.Claim == "" && !u.Republish {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{pod.UID, volume}
	if m.tended[at] != nil || m.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.tended[at] = cancel
	m.loops.Go(func() { m.tend(ctx, pod, volume, &u) })
}

// leaveAlone ends what Tend has begun.
func (m *Manager) leaveAlone(uid types.UID, volume string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{uid, volume}
	if cancel := m.tended[at]; cancel != nil {
		cancel()
		delete(m.tended, at)
	}
}

func (m *Manager) tend(ctx context.Context, pod *corev1.Pod, volume string, u *use) {
	var again <-chan time.Time
	if u.Republish {
		tick := time.NewTicker(m.cfg.Republish)
		defer tick.Stop()
		again = tick.C
	}
	var claims <-chan struct{}
	if u.Claim != "" {
		claims = m.followClaim(ctx, pod.Namespace, u.Claim)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-claims:
			m.grow(ctx, pod, volume)
		case <-again:
			if err := m.republish(ctx, pod, volume); err != nil && ctx.Err() == nil {
				m.cfg.Event(pod, corev1.EventTypeWarning, "FailedMount",
					fmt.Sprintf("MountVolume.SetUp failed for volume %q : publishing it again: %v", volume, err))
			}
		}
	}
}

// republish asks the driver of a published volume once more: it may have something new for it.
func (m *Manager) republish(ctx context.Context, pod *corev1.Pod, volume string) error {
	r, err := m.requestOf(ctx, pod, volume)
	if err != nil {
		return err
	}
	v, err := m.terms(ctx, r)
	if err != nil {
		return err
	}
	d, err := m.connected(ctx, v.Driver)
	if err != nil {
		return err
	}
	u, has := m.use(pod.UID, volume)
	if !has {
		return nil
	}
	c := &call{m: m, d: d, v: &v, pod: pod}
	if u.Attach {
		if c.attachment, err = m.attachment(ctx, &v); err != nil {
			return err
		}
	}
	release, err := m.turns.take(ctx, u.unique())
	if err != nil {
		return err
	}
	defer release()
	if _, has := m.Has(pod.UID, volume); !has {
		return nil
	}
	return c.publish(ctx, &u)
}

// requestOf is the request by which a published volume came.
func (m *Manager) requestOf(ctx context.Context, pod *corev1.Pod, volume string) (Request, error) {
	r := Request{Pod: pod}
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == volume {
			r.Volume = &pod.Spec.Volumes[i]
		}
	}
	u, has := m.use(pod.UID, volume)
	if r.Volume == nil || !has {
		return r, fmt.Errorf("pod %s has no volume %q any more", pod.Name, volume)
	}
	if podspec.ClaimName(pod, r.Volume) == "" {
		return r, nil
	}
	pv, err := m.cfg.Client.CoreV1().PersistentVolumes().Get(ctx, u.Name, metav1.GetOptions{})
	if err != nil {
		return r, fmt.Errorf("persistentvolume %q: %w", u.Name, err)
	}
	r.PV = pv
	return r, nil
}
