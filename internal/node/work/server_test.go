// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/wherryproject/wherry/internal/node/work"
)

// server is an API server that holds one pod, with an informer that sees every change after a while.
type server struct {
	sim   *sim
	first *corev1.Pod

	mu      sync.Mutex
	pod     *corev1.Pod // nil when its record is removed
	version int
	down    bool
	after   error                // statuses are stored, but the answer is this
	lag     func() time.Duration // of the informer
	tell    func(*corev1.Pod)    // the agent's informer
	saves   int
}

func newServer(s *sim, pod *corev1.Pod) *server {
	a := &server{sim: s, first: pod.DeepCopy(), pod: pod.DeepCopy(), lag: func() time.Duration { return watchLag }}
	a.change()
	return a
}

var errDown = errors.New("dial tcp 192.0.2.9:6443: connect: connection refused")

// change gives the pod its next version and tells the informer. a.mu is held, or nobody else knows of a yet.
func (a *server) change() {
	a.version++
	if a.pod != nil {
		a.pod.ResourceVersion = strconv.Itoa(a.version)
	}
	a.send()
}

// send brings the pod as it is now to the agent, later. a.mu is held.
func (a *server) send() {
	if a.down || a.tell == nil {
		return
	}
	pod, version := a.pod.DeepCopy(), a.version
	time.AfterFunc(a.lag(), func() {
		a.mu.Lock()
		tell := a.tell
		if a.down || version != a.version && pod != nil {
			tell = nil // an informer may skip versions; a newer one is on its way, or comes when the server is back
		}
		a.mu.Unlock()
		if tell != nil {
			tell(pod)
		}
	})
}

// watch makes f the informer of the node's agent and returns the pod as it is now.
func (a *server) watch(f func(*corev1.Pod)) *corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell = f
	return a.pod.DeepCopy()
}

// power takes the server away, or gives it back: then the informer lists anew.
func (a *server) power(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = !on
	a.send()
}

// answer makes stores of a status succeed and yet be answered with an error, as when a connection breaks too early.
func (a *server) answer(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.after = err
}

// get returns the stored pod, nil if there is none.
func (a *server) get() *corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pod.DeepCopy()
}

// save stores a status as the real API server does: it merges what differs between from and to.
func (a *server) save(ctx context.Context, pod *corev1.Pod, from, to *corev1.PodStatus) (*corev1.Pod, error) {
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	defer a.mu.Unlock()
	a.saves++
	if a.pod == nil || a.pod.UID != pod.UID {
		return nil, work.ErrGone
	}
	merged, err := merge(&a.pod.Status, from, to)
	if err != nil {
		return nil, err
	}
	old := a.pod.Status
	a.pod.Status = *merged
	a.sim.spy.checkStatus(&old, merged)
	if line := difference(&old, merged); line != "" {
		a.sim.trace.add(byStatus, "status  %s", line)
	}
	if !equality.Semantic.DeepEqual(&old, merged) {
		a.change()
	}
	if a.after != nil {
		return nil, a.after
	}
	return a.pod.DeepCopy(), nil
}

// enter waits as a request does. Unless it fails, a.mu is held.
func (a *server) enter(ctx context.Context) error {
	select {
	case <-time.After(saveTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	a.mu.Lock()
	if a.down {
		a.mu.Unlock()
		return errDown
	}
	return nil
}

func merge(held, from, to *corev1.PodStatus) (*corev1.PodStatus, error) {
	type object struct {
		Status corev1.PodStatus `json:"status"`
	}
	var data [3][]byte
	for i, s := range []*corev1.PodStatus{held, from, to} {
		var err error
		if data[i], err = json.Marshal(object{*s}); err != nil {
			return nil, err
		}
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(data[1], data[2], corev1.Pod{})
	if err != nil {
		return nil, err
	}
	out, err := strategicpatch.StrategicMergePatch(data[0], patch, corev1.Pod{})
	if err != nil {
		return nil, err
	}
	var merged object
	return &merged.Status, json.Unmarshal(out, &merged)
}

// forget is the agent's last word on a pod: a deletion without grace.
func (a *server) forget(ctx context.Context, pod *corev1.Pod) error {
	if err := a.enter(ctx); err != nil {
		return err
	}
	defer a.mu.Unlock()
	if a.pod == nil || a.pod.UID != pod.UID {
		return nil
	}
	a.remove()
	return nil
}

// remove takes the record away. a.mu is held.
func (a *server) remove() {
	if len(a.pod.Finalizers) > 0 {
		zero := int64(0)
		if a.pod.DeletionGracePeriodSeconds == nil || *a.pod.DeletionGracePeriodSeconds != 0 {
			a.pod.DeletionGracePeriodSeconds = &zero
			a.change()
		}
		return
	}
	a.pod = nil
	a.sim.trace.add(byStatus, "record removed")
	a.change()
}

// delete is a user's deletion; grace < 0 takes the pod's own. A pod that has ended, and one deleted without grace, loses
// its record at once.
func (a *server) delete(grace int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pod
	if p == nil {
		return
	}
	if grace < 0 {
		grace = *p.Spec.TerminationGracePeriodSeconds
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		grace = 0
	}
	now := time.Now()
	switch {
	case p.DeletionTimestamp != nil && grace >= *p.DeletionGracePeriodSeconds:
		return // only shortening counts
	case p.DeletionTimestamp != nil: // the deadline moves by as much as the grace
		now = p.DeletionTimestamp.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
	p.DeletionTimestamp = &metav1.Time{Time: now.Add(time.Duration(grace) * time.Second).Truncate(time.Second)}
	p.DeletionGracePeriodSeconds = &grace
	if grace == 0 {
		a.remove()
		return
	}
	a.change()
}

// edit changes the pod as a user may.
func (a *server) edit(f func(*corev1.Pod)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pod != nil {
		f(a.pod)
		a.change()
	}
}
