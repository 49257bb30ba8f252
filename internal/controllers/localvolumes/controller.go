// SPDX-License-Identifier: Apache-2.0

package localvolumes

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/wherryproject/wherry/internal/controllers/loop"
	"github.com/wherryproject/wherry/internal/controllers/ondemand"
	"github.com/wherryproject/wherry/internal/localvolume"
)

// name of the controller.
const name = "wherry-local-volumes"

// EnsureClass makes the class unless there is one of its name. It tries until ctx is done, and logs why it has to.
func EnsureClass(ctx context.Context, client kubernetes.Interface, log *slog.Logger) error {
	logged := ""
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		_, err := client.StorageV1().StorageClasses().Create(ctx, class(), metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		if ctx.Err() == nil && err.Error() != logged {
			logged = err.Error()
			log.Warn("the default StorageClass cannot be made: claims without a class stay pending", "class", Class,
				"err", err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// Controller is the provisioner for a node, whose volumes are in the folders.
func Controller(node string, folders *localvolume.Folders) ondemand.Controller {
	core := corev1.SchemeGroupVersion
	return ondemand.Controller{
		Name: name, Code: "github.com/wherryproject/wherry/internal/controllers/localvolumes",
		Starts: []ondemand.Start{{Kind: core.WithResource("persistentvolumeclaims")},
			{Kind: core.WithResource("persistentvolumes")}},
		New: func(_ context.Context, k *ondemand.Kit) (func(context.Context), error) {
			return newController(k, node, folders).run, nil
		},
	}
}

type controller struct {
	client  kubernetes.Interface
	loop    *loop.Loop
	node    string
	folders *localvolume.Folders
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	events  *loop.Recorder
}

const (
	ofClaim  = "claim/"
	ofVolume = "volume/"
)

func newController(k *ondemand.Kit, node string, folders *localvolume.Folders) *controller {
	core, storage := k.Informers.Core().V1(), k.Informers.Storage().V1()
	c := &controller{client: k.Client, node: node, folders: folders, claims: core.PersistentVolumeClaims().Lister(),
		volumes: core.PersistentVolumes().Lister(), classes: storage.StorageClasses().Lister(),
		events: loop.NewRecorder(k.Client, Provisioner)}
	c.loop = loop.New(name, k.Log, c.sync)
	c.loop.Watch(core.PersistentVolumeClaims().Informer(), func(obj any) {
		claim := obj.(*corev1.PersistentVolumeClaim)
		if claim.Spec.VolumeName != "" {
			c.loop.Add(ofVolume + claim.Spec.VolumeName)
			return
		}
		c.loop.Add(ofClaim + claim.Namespace + "/" + claim.Name)
	})
	c.loop.Watch(core.PersistentVolumes().Informer(), func(obj any) {
		c.loop.Add(ofVolume + obj.(*corev1.PersistentVolume).Name)
	})
	c.loop.Watch(storage.StorageClasses().Informer(), func(any) {}) // what claims name is known when they are looked at
	return c
}

func (c *controller) run(ctx context.Context) {
	if err := c.folders.Sweep(); err != nil {
		c.loop.Log.Warn("folders of volumes that are gone cannot be removed", "err", err)
	}
	if err := c.events.Run(ctx, c.loop); err != nil && ctx.Err() == nil {
		c.loop.Log.Error("controller ended", "controller", name, "err", err)
	}
}

func (c *controller) sync(ctx context.Context, key string) error {
	var err error
	if volume, ok := strings.CutPrefix(key, ofVolume); ok {
		err = c.syncVolume(ctx, volume)
	} else {
		namespace, claim, _ := strings.Cut(strings.TrimPrefix(key, ofClaim), "/")
		err = c.syncClaim(ctx, namespace, claim)
	}
	if apierrors.IsConflict(err) {
		return loop.Later{Why: err.Error()}
	}
	return err
}

// syncClaim makes the volume of a claim.
func (c *controller) syncClaim(ctx context.Context, namespace, name string) error {
	claim, err := c.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	class, err := c.classes.Get(storagehelpers.GetPersistentVolumeClaimClass(claim))
	if err != nil {
		return nil //nolint:nilerr // a class that is not there is no class of ours
	}
	needed, refusal := nextForClaim(claim, class, c.node)
	if refusal != "" {
		c.events.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", refusal)
	}
	if !needed {
		return nil
	}
	v := volumeFor(claim, class, c.node, c.folders.Path(nameFor(claim)))
	if _, err := c.volumes.Get(v.Name); err == nil {
		return nil // the binder is at it
	}
	size := requested(claim)
	notHeld, err := c.folders.Make(v.Name, size.Value())
	if err != nil {
		c.events.Eventf(claim, corev1.EventTypeWarning, "ProvisioningFailed", "failed to make the volume's folder: %v",
			err)
		return err
	}
	if _, err = c.client.CoreV1().PersistentVolumes().Create(ctx, v, metav1.CreateOptions{}); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return fmt.Errorf("create volume %s: %w", v.Name, err)
	}
	c.events.Eventf(claim, corev1.EventTypeNormal, "ProvisioningSucceeded", "Successfully provisioned volume %s",
		v.Name)
	c.reportSize(claim, notHeld)
	return nil
}

// reportSize records an event that a volume is not held to its size.
func (c *controller) reportSize(claim *corev1.PersistentVolumeClaim, notHeld string) {
	if notHeld != "" {
		c.events.Eventf(claim, corev1.EventTypeWarning, "VolumeSizeNotEnforced",
			"the volume can take more than it asked for: %s", notHeld)
	}
}

func (c *controller) syncVolume(ctx context.Context, name string) error {
	v, err := c.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var claim *corev1.PersistentVolumeClaim
	if ref := v.Spec.ClaimRef; ref != nil {
		if claim, err = c.claims.PersistentVolumeClaims(ref.Namespace).Get(ref.Name); err != nil ||
			claim.UID != ref.UID {
			claim = nil
		}
	}
	switch nextForVolume(v, claim, c.node) {
	case remove:
		if err := c.removeFolder(v); err != nil {
			c.events.Eventf(v, corev1.EventTypeWarning, "VolumeFailedDelete", "removing the volume's folder: %v", err)
			return err
		}
		return c.forget(ctx, v)
	case letGo:
		return c.forget(ctx, v)
	case grow:
		return c.grow(ctx, v, claim)
	}
	return nil
}

// removeFolder removes a volume's data, if it is where this server has its volumes: a restored store may name
// others.
func (c *controller) removeFolder(v *corev1.PersistentVolume) error {
	if filepath.Clean(v.Spec.Local.Path) != c.folders.Path(v.Name) {
		return fmt.Errorf("%s is not in this server's folder of volumes (%s): remove it by hand, then take the finalizer "+
			"%s off the PersistentVolume", v.Spec.Local.Path, filepath.Dir(c.folders.Path(v.Name)), finalizer)
	}
	return c.folders.Remove(v.Name)
}

// forget deletes a volume's object.
func (c *controller) forget(ctx context.Context, v *corev1.PersistentVolume) error {
	volumes := c.client.CoreV1().PersistentVolumes()
	if v.DeletionTimestamp == nil {
		err := volumes.Delete(ctx, v.Name,
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(v.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil // its change comes
	}
	if !slices.Contains(v.Finalizers, finalizer) {
		return nil
	}
	changed := v.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(f string) bool { return f == finalizer })
	_, err := volumes.Update(ctx, changed, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// grow makes a volume as large as its claim wants it: the folder first, then its objects.
func (c *controller) grow(ctx context.Context, v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	want, has := requested(claim), v.Spec.Capacity[corev1.ResourceStorage]
	if want.Cmp(has) > 0 {
		notHeld, err := c.folders.Grow(v.Name, want.Value())
		if err != nil {
			c.events.Eventf(claim, corev1.EventTypeWarning, "VolumeResizeFailed", "%v", err)
			return err
		}
		changed := v.DeepCopy()
		changed.Spec.Capacity[corev1.ResourceStorage] = want
		if v, err = c.client.CoreV1().PersistentVolumes().Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
			return err
		}
		c.reportSize(claim, notHeld)
	}
	changed := claim.DeepCopy()
	changed.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: v.Spec.Capacity[corev1.ResourceStorage]}
	changed.Status.Conditions = slices.DeleteFunc(changed.Status.Conditions,
		func(n corev1.PersistentVolumeClaimCondition) bool {
			return n.Type == corev1.PersistentVolumeClaimResizing ||
				n.Type == corev1.PersistentVolumeClaimFileSystemResizePending
		})
	_, err := c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, changed,
		metav1.UpdateOptions{})
	if err == nil {
		c.events.Eventf(claim, corev1.EventTypeNormal, "VolumeResizeSuccessful", "the volume has %s now", want.String())
	}
	return err
}
