// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/wherryproject/wherry/internal/controllers/scheduler/claims"
	"github.com/wherryproject/wherry/internal/controllers/scheduler/fit"
	"github.com/wherryproject/wherry/internal/podspec"
)

// volumeBook knows the claims, volumes and classes from the first pod on that has a claim. Before, it costs nothing.
type volumeBook struct {
	factory informers.SharedInformerFactory
	pods    corelisters.PodLister

	begin sync.Once
	// known is set by the owner of the state once everything there is has been heard of.
	known   bool
	events  int // that were heard of so far
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	nodes   storagelisters.CSINodeLister
	drivers storagelisters.CSIDriverLister

	beginRoom sync.Once
	roomKnown bool // likewise; of use once a driver counts its room
	room      storagelisters.CSIStorageCapacityLister
}

// learn starts the informers. Their events have the pods with claims tried again.
func (b *volumeBook) learn(ctx context.Context, r *run) {
	core, storage := b.factory.Core().V1(), b.factory.Storage().V1()
	b.claims, b.volumes = core.PersistentVolumeClaims().Lister(), core.PersistentVolumes().Lister()
	b.classes, b.nodes = storage.StorageClasses().Lister(), storage.CSINodes().Lister()
	b.drivers = storage.CSIDrivers().Lister()
	b.hear(ctx, r, func() { b.known = true }, core.PersistentVolumeClaims().Informer(),
		core.PersistentVolumes().Informer(), storage.StorageClasses().Informer(), storage.CSINodes().Informer(),
		storage.CSIDrivers().Informer())
}

// learnRoom starts the informer of what drivers have of room, which few count.
func (b *volumeBook) learnRoom(ctx context.Context, r *run) {
	storage := b.factory.Storage().V1()
	b.room = storage.CSIStorageCapacities().Lister()
	b.hear(ctx, r, func() { b.roomKnown = true }, storage.CSIStorageCapacities().Informer())
}

// hear starts informers; known is called by the owner of the state when all that is there has been heard of.
func (b *volumeBook) hear(ctx context.Context, r *run, known func(), from ...cache.SharedIndexInformer) {
	heard := func() {
		r.box.send(func() {
			b.events++
			r.state.tryClaims()
		})
	}
	var synced []cache.DoneChecker
	for _, i := range from {
		registration, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { heard() },
			UpdateFunc: func(_, _ any) { heard() }, DeleteFunc: func(any) { heard() }})
		if err != nil { // the server is stopping
			return
		}
		synced = append(synced, registration.HasSyncedChecker())
	}
	b.factory.StartWithContext(ctx)
	go func() {
		if cache.WaitFor(ctx, "", synced...) {
			r.box.send(func() {
				known()
				r.state.tryClaims()
			})
		}
	}()
}

// ready reports whether enough is known to decide by. What is not known yet is asked for.
func (b *volumeBook) ready(ctx context.Context, r *run) bool {
	b.begin.Do(func() { b.learn(ctx, r) })
	if !b.known {
		return false
	}
	drivers, _ := b.drivers.List(labels.Everything()) // a lister over memory has no errors
	if !slices.ContainsFunc(drivers, claims.Counts) {
		return true
	}
	b.beginRoom.Do(func() { b.learnRoom(ctx, r) })
	return b.roomKnown
}

func (b *volumeBook) world() claims.World {
	return claims.World{
		Claim: func(namespace, name string) *corev1.PersistentVolumeClaim {
			return found(b.claims.PersistentVolumeClaims(namespace).Get(name))
		},
		Volume: func(name string) *corev1.PersistentVolume { return found(b.volumes.Get(name)) },
		Class:  func(name string) *storagev1.StorageClass { return found(b.classes.Get(name)) },
		Volumes: func() []*corev1.PersistentVolume {
			all, _ := b.volumes.List(labels.Everything()) // a lister over memory has no errors
			return all
		},
		Pods: func(namespace string) []*corev1.Pod {
			all, _ := b.pods.Pods(namespace).List(labels.Everything())
			return all
		},
		Limits: b.limits,
		Driver: func(name string) *storagev1.CSIDriver { return found(b.drivers.Get(name)) },
		Room: func() []*storagev1.CSIStorageCapacity {
			if !b.roomKnown {
				return nil // a driver has begun to count just now: what it has is asked for at the next try
			}
			all, _ := b.room.List(labels.Everything())
			return all
		},
	}
}

// limits are what the CSI drivers on a node say of how many volumes they take.
func (b *volumeBook) limits(node string) map[string]int {
	n := found(b.nodes.Get(node))
	if n == nil {
		return nil
	}
	out := map[string]int{}
	for _, d := range n.Spec.Drivers {
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			out[d.Name] = int(*d.Allocatable.Count)
		}
	}
	return out
}

// found is what a lister has, nil if it has nothing of that name.
func found[T any](obj *T, err error) *T {
	if err != nil {
		return nil
	}
	return obj
}

// tryClaims has the pods tried again that have claims.
func (s *state) tryClaims() {
	for _, w := range s.waiting {
		if len(podspec.ClaimNames(w.pod)) > 0 {
			w.try = true
		}
	}
}

// nodesFor is the cluster without the nodes that will not do, and what is wrong with the last of them.
func nodesFor(c fit.Cluster, v *claims.Verdict) (fit.Cluster, string) {
	out, why := fit.Cluster{Nodes: map[string]*fit.Node{}, NamespaceLabels: c.NamespaceLabels}, ""
	for name, n := range c.Nodes {
		if n.Object == nil {
			continue
		}
		if no := v.Fits(n.Object); no != "" {
			why = no
			continue
		}
		out.Nodes[name] = n
	}
	return out, why
}

// decideWithClaims is decide for a pod with claims; ok is false while it is not known yet what these are.
func (r *run) decideWithClaims(ctx context.Context, pod *corev1.Pod) (d fit.Decision, v claims.Verdict, ok bool) {
	if !r.volumes.ready(ctx, r) {
		return d, v, false
	}
	v = claims.Judge(pod, r.volumes.world())
	if v.Refusal != "" {
		return fit.Decision{Refusal: v.Refusal}, v, true
	}
	cluster, why := nodesFor(r.state.cluster, &v)
	if len(cluster.Nodes) == 0 && why != "" {
		return fit.Decision{Refusal: fmt.Sprintf("0/%d nodes are available: %s.", len(r.state.cluster.Nodes), why)}, v,
			true
	}
	d = fit.DecideBeside(pod, cluster, r.promised)
	// Room is made on any node: not for a pod whose volumes are on some only.
	d.Crowded = d.Crowded && why == ""
	return d, v, true
}

// bindVolumes does what has to be done with the pod's claims for a node. True: all are bound, and so may the pod be.
func (r *run) bindVolumes(ctx context.Context, v *claims.Verdict, node *corev1.Node) (bool, error) {
	steps, wait := v.Prepare(node)
	for _, s := range steps {
		var err error
		if s.Volume != nil {
			err = r.reserve(ctx, s)
		} else {
			err = r.selectNode(ctx, s.Claim, node.Name)
		}
		if err != nil {
			return false, fmt.Errorf("volume of claim %s: %w", s.Claim.Name, err)
		}
	}
	return !wait, nil
}

// reserve binds a volume to a claim; the binder does the rest.
func (r *run) reserve(ctx context.Context, s claims.Step) error {
	bound, dirty, err := storagehelpers.GetBindVolumeToClaim(s.Volume, s.Claim)
	if err != nil || !dirty {
		return err
	}
	_, err = r.client.CoreV1().PersistentVolumes().Update(ctx, bound, metav1.UpdateOptions{})
	return err
}

// selectNode shows the provisioner where a claim's first consumer goes.
func (r *run) selectNode(ctx context.Context, claim *corev1.PersistentVolumeClaim, node string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": claim.UID,
		"annotations": map[string]string{storagehelpers.AnnSelectedNode: node}}})
	if err != nil {
		return err
	}
	_, err = r.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType,
		patch, metav1.PatchOptions{})
	return err
}

// bindWithClaims binds the pod once its claims are bound. Until then it is taken off the node again, and tried anew
// when something about volumes has changed since it was decided about.
func (r *run) bindWithClaims(ctx context.Context, pod *corev1.Pod, v *claims.Verdict, node *corev1.Node, events int) {
	ready, err := r.bindVolumes(ctx, v, node)
	switch {
	case err != nil && (apierrors.IsConflict(err) || apierrors.IsNotFound(err) || ctx.Err() != nil):
	case err != nil:
		r.box.send(func() { r.bindFailed(ctx, pod, node.Name, err) })
		return
	case ready:
		r.bind(ctx, pod, node.Name)
		return
	}
	if err == nil { // its condition says so; an event would be one for each pod whose volumes are new
		r.report(ctx, pod, "waiting until the pod's PersistentVolumeClaims are bound to volumes on node "+node.Name+
			": kubectl describe pvc "+strings.Join(podspec.ClaimNames(pod), " "))
	}
	r.box.send(func() {
		w, ok := r.state.waiting[pod.UID]
		if !ok {
			return
		}
		r.state.unplace(pod.UID)
		w.binding, w.try = false, r.volumes.events != events
	})
}
