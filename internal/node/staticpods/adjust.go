// SPDX-License-Identifier: Apache-2.0

package staticpods

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/static"
)

// adjust begins and ends pods until those that are there are those that are wanted, as far as that can be by now.
func (k *Keeper) adjust(ctx context.Context) {
	wanted := k.wanted()
	k.reportGone(wanted)
	there := map[string]*corev1.Pod{}
	k.mu.Lock()
	for key, s := range k.there {
		there[key] = s.Pod
	}
	k.mu.Unlock()
	maps.DeleteFunc(k.again, func(uid types.UID, _ bool) bool { return !hasUID(there, uid) })
	begin, end := static.Next(there, wanted, k.again)
	for _, key := range begin {
		k.begin(ctx, key, wanted[key])
	}
	for _, key := range end {
		k.end(ctx, key, there[key])
	}
	if len(begin)+len(end) > 0 {
		k.cfg.Host.StaticChanged()
	}
}

func hasUID(pods map[string]*corev1.Pod, uid types.UID) bool {
	for _, p := range pods {
		if p.UID == uid {
			return true
		}
	}
	return false
}

// wanted are the pods of all manifests.
func (k *Keeper) wanted() map[string]*corev1.Pod {
	var lists [][]*corev1.Pod
	for _, place := range slices.Sorted(maps.Keys(k.manifests)) {
		lists = append(lists, k.manifests[place].list)
	}
	wanted, doubles := static.Want(lists)
	now := map[string]bool{}
	for _, p := range doubles {
		now[static.Key(p)] = true
		if !k.doubled[static.Key(p)] {
			message := fmt.Sprintf("pod %s is in more than one manifest; the first one counts", static.Key(p))
			k.cfg.Logger.Warn("a static pod is there twice", "pod", static.Key(p))
			k.cfg.Host.StaticTrouble(k.placeOf(p), message)
		}
	}
	k.doubled = now
	return wanted
}

func (k *Keeper) placeOf(pod *corev1.Pod) string {
	for place, m := range k.manifests {
		if slices.Contains(m.list, pod) {
			return place
		}
	}
	return ""
}

func (k *Keeper) begin(ctx context.Context, key string, want *corev1.Pod) {
	pod := want.DeepCopy()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
	pod.Status = static.Anew(pod, k.last[pod.UID])
	delete(k.last, pod.UID)
	pod.Annotations[static.SeenAnnotation] = time.Now().Format(time.RFC3339Nano)
	s := &state{Place: k.placeOf(want), Pod: pod}
	k.write(s)
	k.mu.Lock()
	k.there[key] = s
	k.mu.Unlock()
	k.cfg.Logger.Info("static pod begins", "pod", key, "uid", string(pod.UID), "place", s.Place)
	k.cfg.Host.BeginStatic(ctx, pod)
}

func (k *Keeper) end(ctx context.Context, key string, pod *corev1.Pod) {
	k.mu.Lock()
	s := k.there[key]
	if s == nil || s.Pod.UID != pod.UID {
		k.mu.Unlock()
		return // it has gone by itself
	}
	s.Pod = static.Ending(s.Pod, metav1.Now())
	pod = s.Pod
	k.writeLocked(s)
	k.mu.Unlock()
	k.cfg.Logger.Info("static pod ends", "pod", key, "uid", string(pod.UID), "grace", *pod.DeletionGracePeriodSeconds)
	k.cfg.Host.EndStatic(ctx, pod)
}

// reportGone notifies the agent of pods of which nothing is left. The last status of those that start again is kept.
func (k *Keeper) reportGone(wanted map[string]*corev1.Pod) {
	k.mu.Lock()
	gone := k.gone
	k.gone = nil
	k.mu.Unlock()
	for _, p := range gone {
		if w := wanted[static.Key(p)]; w != nil && w.UID == p.UID {
			k.last[p.UID] = &p.Status
		}
		k.cfg.Host.LeftStatic(p)
	}
	if len(gone) > 0 {
		k.cfg.Host.StaticChanged()
	}
}

func (k *Keeper) write(s *state) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writeLocked(s)
}

// writeLocked remembers a pod; one that cannot be remembered runs all the same.
func (k *Keeper) writeLocked(s *state) {
	if err := s.write(k.cfg.State); err != nil {
		k.cfg.Logger.Warn("cannot remember a static pod", "pod", static.Key(s.Pod), "err", err)
	}
}

// Owns reports whether a pod is a static one.
func (k *Keeper) Owns(uid types.UID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.find(uid) != nil
}

func (k *Keeper) find(uid types.UID) *state {
	for _, s := range k.there {
		if s.Pod.UID == uid {
			return s
		}
	}
	return nil
}

// Pods are all static pods that are there, with their newest statuses, sorted by their keys. They are not to be
// changed.
func (k *Keeper) Pods() (out []*corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(k.there)) {
		out = append(out, k.there[key].Pod)
	}
	return out
}

// Pod is the static pod with this key, or nil.
func (k *Keeper) Pod(key string) *corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.there[key]; s != nil {
		return s.Pod
	}
	return nil
}

// Save remembers a pod's status.
func (k *Keeper) Save(uid types.UID, status *corev1.PodStatus) error {
	err := k.save(uid, status)
	if err == nil {
		k.cfg.Host.StaticChanged()
	}
	return err
}

func (k *Keeper) save(uid types.UID, status *corev1.PodStatus) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.find(uid)
	if s == nil {
		return nil
	}
	pod := *s.Pod
	pod.Status = *status.DeepCopy()
	now := &state{Place: s.Place, Pod: &pod}
	if err := now.write(k.cfg.State); err != nil {
		return fmt.Errorf("remembering the status of static pod %s: %w", static.Key(&pod), err)
	}
	s.Pod = &pod
	return nil
}

// Forget is called when nothing is left of a pod.
func (k *Keeper) Forget(uid types.UID) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.find(uid)
	if s == nil {
		return nil
	}
	if err := os.Remove(stateFile(k.cfg.State, uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	delete(k.there, static.Key(s.Pod))
	k.gone = append(k.gone, s.Pod)
	select {
	case k.left <- struct{}{}:
	default:
	}
	return nil
}
