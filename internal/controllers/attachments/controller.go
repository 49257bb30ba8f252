// SPDX-License-Identifier: Apache-2.0

package attachments

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/wherryproject/wherry/internal/controllers/loop"
	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

const name = "attachdetach-controller"

// Controller is the row of the controller. It starts with the first volume of a CSI driver, or the first attachment.
func Controller() ondemand.Controller {
	return ondemand.Controller{
		Name: name, Starts: []ondemand.Start{driversVolume(),
			{Kind: storagev1.SchemeGroupVersion.WithResource("volumeattachments")}},
		Code: "github.com/wherryproject/wherry/internal/controllers/attachments",
		New: func(_ context.Context, k *ondemand.Kit) (func(context.Context), error) {
			return newController(k).run, nil
		},
	}
}

// driversVolume is a start by a persistent volume of a driver.
func driversVolume() ondemand.Start {
	return ondemand.Start{
		Kind: corev1.SchemeGroupVersion.WithResource("persistentvolumes"),
		If: func(_ schema.GroupResource, obj runtime.Object) bool {
			switch v := obj.(type) {
			case *core.PersistentVolume:
				return v.Spec.CSI != nil
			case *corev1.PersistentVolume:
				return v.Spec.CSI != nil
			}
			return false
		},
		There: func(ctx context.Context, l ondemand.Looking) (bool, error) {
			list, err := l.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return false, err
			}
			return slices.ContainsFunc(list.Items,
				func(v corev1.PersistentVolume) bool { return v.Spec.CSI != nil }), nil
		},
	}
}

type controller struct {
	client      kubernetes.Interface
	loop        *loop.Loop
	events      *loop.Recorder
	nodes       corelisters.NodeLister
	pods        corelisters.PodLister
	claims      corelisters.PersistentVolumeClaimLister
	volumes     corelisters.PersistentVolumeLister
	drivers     storagelisters.CSIDriverLister
	attachments storagelisters.VolumeAttachmentLister
	recorded    map[string]map[eventKey]bool // by node; the one worker has it
}

func newController(k *ondemand.Kit) *controller {
	coreKinds, storage := k.Informers.Core().V1(), k.Informers.Storage().V1()
	c := &controller{client: k.Client, events: loop.NewRecorder(k.Client, name), nodes: coreKinds.Nodes().Lister(),
		pods: coreKinds.Pods().Lister(), claims: coreKinds.PersistentVolumeClaims().Lister(),
		volumes: coreKinds.PersistentVolumes().Lister(), drivers: storage.CSIDrivers().Lister(),
		attachments: storage.VolumeAttachments().Lister(), recorded: map[string]map[eventKey]bool{}}
	c.loop = loop.New(name, k.Log, c.sync)
	c.loop.Watch(coreKinds.Nodes().Informer(), func(obj any) { c.loop.Add(obj.(*corev1.Node).Name) })
	c.loop.Watch(coreKinds.Pods().Informer(), func(obj any) {
		if pod := obj.(*corev1.Pod); pod.Spec.NodeName != "" && hasClaims(pod) {
			c.loop.Add(pod.Spec.NodeName)
		}
	})
	all := func(any) { c.addAll() }
	c.loop.Watch(coreKinds.PersistentVolumeClaims().Informer(), all)
	c.loop.Watch(coreKinds.PersistentVolumes().Informer(), all)
	c.loop.Watch(storage.CSIDrivers().Informer(), all)
	c.loop.Watch(storage.VolumeAttachments().Informer(), func(obj any) {
		c.loop.Add(obj.(*storagev1.VolumeAttachment).Spec.NodeName)
		c.addAll() // another node may wait for the volume
	})
	return c
}

func hasClaims(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	})
}

func (c *controller) addAll() {
	nodes, _ := c.nodes.List(labels.Everything()) // a lister over memory has no errors
	for _, n := range nodes {
		c.loop.Add(n.Name)
	}
}

func (c *controller) run(ctx context.Context) {
	if err := c.events.Run(ctx, c.loop); err != nil && ctx.Err() == nil {
		c.loop.Log.Error("controller ended", "controller", name, "err", err)
	}
}

// sync does for a node what there is to do.
func (c *controller) sync(ctx context.Context, node string) error {
	f := c.facts(node)
	f.Node, _ = c.nodes.Get(node)
	s := Decide(f)
	c.record(node, s.Events)
	for _, a := range s.Create {
		_, err := c.client.StorageV1().VolumeAttachments().Create(ctx, a, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if s.Changed {
		if err := c.report(ctx, node, s.Report); err != nil {
			return err
		}
	}
	if s.Changed || len(s.Delete) > 0 {
		if err := c.detach(ctx, f); err != nil {
			return err
		}
	}
	if s.Again > 0 {
		return loop.Later{After: s.Again, Why: "the node may come back"}
	}
	return nil
}

// detach deletes what nothing needs. The node is read again: it may have begun to use a volume meanwhile.
func (c *controller) detach(ctx context.Context, f Facts) error {
	node, err := c.client.CoreV1().Nodes().Get(ctx, f.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node, err = nil, nil
	}
	if err != nil {
		return err
	}
	f.Node = node
	for _, a := range Decide(f).Delete {
		uid := a.UID
		err := c.client.StorageV1().VolumeAttachments().Delete(ctx, a.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (c *controller) report(ctx context.Context, node string, list []corev1.AttachedVolume) error {
	if list == nil {
		list = []corev1.AttachedVolume{}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"volumesAttached": list}})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// eventKey is an event that holds for a pod.
type eventKey struct {
	pod    types.UID
	reason string
	text   string
}

// record makes each event once, as long as it holds for a pod of the node.
func (c *controller) record(node string, list []Message) {
	now := map[eventKey]bool{}
	for _, m := range list {
		key := eventKey{m.Pod.UID, m.Reason, m.Text}
		if !c.recorded[node][key] && !now[key] {
			c.events.Event(m.Pod, m.Type, m.Reason, m.Text)
		}
		now[key] = true
	}
	c.recorded[node] = now
	if len(now) == 0 {
		delete(c.recorded, node)
	}
}

func (c *controller) facts(node string) Facts {
	pods, _ := c.pods.List(labels.Everything())
	attachments, _ := c.attachments.List(labels.Everything())
	return Facts{Name: node, Attachments: attachments, Now: time.Now(),
		Pods: slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName != node }),
		Claim: func(namespace, name string) *corev1.PersistentVolumeClaim {
			return found(c.claims.PersistentVolumeClaims(namespace).Get(name))
		},
		Volume: func(name string) *corev1.PersistentVolume { return found(c.volumes.Get(name)) },
		Driver: func(name string) *storagev1.CSIDriver { return found(c.drivers.Get(name)) },
	}
}

// found is what a lister has, nil if it has nothing of that name.
func found[T any](obj *T, err error) *T {
	if err != nil {
		return nil
	}
	return obj
}
