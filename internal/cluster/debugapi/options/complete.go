// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/ways"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Completer is a request that says all of what is going to be done, once it is completed: rules of the cluster judge
// what is done, and not what was left out (DA-06).
type Completer interface {
	// Complete fills in what the client has left out. What makes no sense stays as it is: Session refuses it.
	Complete(pod *corev1.Pod, l Limits)
}

var _, _, _ Completer = (*Shell)(nil), (*Exec)(nil), (*Files)(nil)

// Complete implements Completer.
func (o *Shell) Complete(pod *corev1.Pod, l Limits) {
	o.Bounds.complete(l)
	usual(&o.Container, usualContainer(pod))
	usual(&o.Image, debugask.ToolboxImage)
	usual(&o.Profile, DefaultProfile)
	if o.Profile == profileRestricted {
		usual(&o.User, userOfContainer(pod, o.Container))
	}
}

// Complete implements Completer. Without a container a command sees the processes of none.
func (o *Exec) Complete(_ *corev1.Pod, l Limits) { o.Bounds.complete(l) }

// Complete implements Completer.
func (o *Files) Complete(pod *corev1.Pod, l Limits) {
	o.Bounds.complete(l)
	usual(&o.Container, usualContainer(pod))
	usual(&o.Op, wire.OpPack)
}

func (b *Bounds) complete(l Limits) {
	usual(&b.TTL, min(usualTTL, l.TTL).String())
	usual(&b.Memory, resource.NewQuantity(min(usualMemory, l.Memory), resource.BinarySI).String())
	usual(&b.CPUs, resource.NewMilliQuantity(int64(min(usualCPUs, l.CPUs)*1000), resource.DecimalSI).String())
}

func usual(text *string, is string) {
	if *text == "" {
		*text = is
	}
}

// usualContainer is the container that kubectl would take.
func usualContainer(pod *corev1.Pod) string {
	name, _ := ways.Default(pod)
	return name
}

// userOfContainer is whom a container's processes run as, by its pod's spec, where that is not root: its files are
// that user's. Otherwise it is nobody.
func userOfContainer(pod *corev1.Pod, name string) string {
	var uid, gid *int64
	if s := pod.Spec.SecurityContext; s != nil {
		uid, gid = s.RunAsUser, s.RunAsGroup
	}
	if ref, ok := podspec.FindContainer(&pod.Spec, name); ok && ref.Container.SecurityContext != nil {
		if s := ref.Container.SecurityContext; s.RunAsUser != nil {
			uid = s.RunAsUser
		}
		if s := ref.Container.SecurityContext; s.RunAsGroup != nil {
			gid = s.RunAsGroup
		}
	}
	switch {
	case uid == nil || *uid == 0:
		return nobody
	case gid == nil:
		return fmt.Sprintf("%d:%d", *uid, *uid)
	}
	return fmt.Sprintf("%d:%d", *uid, *gid)
}
