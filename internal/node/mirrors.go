// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/static"
)

// mirrors keeps the mirror pods of this node: for each static pod one in the API server, with its status, and no other
// (PL-12). Package static decides; what is done once and fails is done again.
type mirrors struct {
	a *Agent

	mu      sync.Mutex
	have    map[string]*corev1.Pod          // as the API server has them, by key
	sent    map[types.UID]*corev1.PodStatus // statuses that were written to them, by the mirror's UID
	queue   map[string]bool                 // keys to look at
	retries map[string]int                  // that have failed, and how often in a row
	signal  chan struct{}                   // holds one token while queue is not empty
}

// Bounds of the pause before a step is tried again.
const (
	mirrorRetry    = 200 * time.Millisecond
	mirrorRetryMax = 10 * time.Second
)

func newMirrors(a *Agent) *mirrors {
	return &mirrors{a: a, have: map[string]*corev1.Pod{}, sent: map[types.UID]*corev1.PodStatus{},
		queue: map[string]bool{}, retries: map[string]int{}, signal: make(chan struct{}, 1)}
}

// saw takes in a mirror pod as the API server has it.
func (m *mirrors) saw(pod *corev1.Pod) {
	key := static.Key(pod)
	m.mu.Lock()
	m.have[key] = pod
	m.mu.Unlock()
	m.due(key)
}

// gone is called when the API server no longer has a mirror pod.
func (m *mirrors) gone(pod *corev1.Pod) {
	key := static.Key(pod)
	m.mu.Lock()
	if h := m.have[key]; h != nil && h.UID == pod.UID {
		delete(m.have, key)
	}
	delete(m.sent, pod.UID)
	m.mu.Unlock()
	m.due(key)
}

// translate returns the node's UID of a pod that the API server knows by uid.
func (m *mirrors) translate(uid types.UID) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.have {
		if h.UID == uid {
			return static.Translate(h)
		}
	}
	return uid
}

// due has one pod looked at.
func (m *mirrors) due(key string) {
	m.mu.Lock()
	m.queue[key] = true
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// dueAll has every static pod looked at.
func (m *mirrors) dueAll() {
	for _, p := range m.a.statics.Pods() {
		m.due(static.Key(p))
	}
}

// run does what is due until ctx ends. It is to begin when the API server has listed the mirror pods.
func (m *mirrors) run(ctx context.Context) {
	m.dueAll()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.signal:
		}
		m.mu.Lock()
		batch := m.queue
		m.queue = map[string]bool{}
		m.mu.Unlock()
		for key := range batch {
			m.attend(ctx, key)
		}
	}
}

// attend takes one step for a pod. What it changes comes back as news, and with it the next step.
func (m *mirrors) attend(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	err := m.step(ctx, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		delete(m.retries, key)
		return
	}
	if ctx.Err() == context.Canceled {
		return
	}
	pause := min(mirrorRetry<<min(m.retries[key], 10), mirrorRetryMax)
	if m.retries[key]++; m.retries[key] == 2 { // once may be a matter of moments
		m.a.log.Warn("cannot keep the mirror of a static pod; it is tried again", "pod", key, "err", err)
	}
	time.AfterFunc(pause, func() { m.due(key) })
}

func (m *mirrors) step(ctx context.Context, key string) error {
	pod := m.a.statics.Pod(key)
	m.mu.Lock()
	have := m.have[key]
	sent := have != nil && pod != nil && m.sent[have.UID] != nil &&
		equality.Semantic.DeepEqual(m.sent[have.UID], &pod.Status)
	m.mu.Unlock()
	switch static.Mirror(pod, have, sent) {
	case static.Create:
		return m.create(ctx, pod)
	case static.Delete:
		return m.delete(ctx, have)
	case static.Publish:
		return m.publish(ctx, pod, have)
	case static.Nothing:
	}
	return nil
}

func (m *mirrors) create(ctx context.Context, pod *corev1.Pod) error {
	core := m.a.cfg.Client.CoreV1()
	node, err := core.Nodes().Get(ctx, m.a.cfg.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	made, err := core.Pods(pod.Namespace).Create(ctx, static.MirrorOf(pod, node), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating it: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.have[static.Key(pod)] == nil {
		m.have[static.Key(pod)] = made
	}
	return nil
}

func (m *mirrors) delete(ctx context.Context, have *corev1.Pod) error {
	now := int64(0)
	err := m.a.cfg.Client.CoreV1().Pods(have.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &have.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting it: %w", err)
	}
	return nil
}

func (m *mirrors) publish(ctx context.Context, pod, have *corev1.Pod) error {
	// The status written last may be newer than the one that the watch has delivered.
	from := &have.Status
	m.mu.Lock()
	if last := m.sent[have.UID]; last != nil {
		from = static.MirrorStatus(last, &have.Status)
	}
	m.mu.Unlock()
	patch, err := statusPatch(have.UID, from, static.MirrorStatus(&pod.Status, &have.Status))
	if err != nil {
		return err
	}
	_, err = m.a.cfg.Client.CoreV1().Pods(have.Namespace).Patch(ctx, have.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("storing its status: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.sent[have.UID] = &pod.Status
	}
	return nil
}

// nodeUID is how events name the node they are about, as the kubelet's do.
func nodeUID(name string) types.UID { return types.UID(name) }
