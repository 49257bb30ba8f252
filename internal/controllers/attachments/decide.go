// SPDX-License-Identifier: Apache-2.0

package attachments

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/node/csi/terms"
	"github.com/wherryproject/wherry/internal/podspec"
)

// unreachable is how long a node may be out of reach before its volumes are taken from it; it is Kubernetes'.
const unreachable = 6 * time.Minute

// Facts are what is known about one node, and about volumes. What they hold is not changed.
type Facts struct {
	Name        string
	Node        *corev1.Node  // nil: there is none of that name
	Pods        []*corev1.Pod // on it
	Attachments []*storagev1.VolumeAttachment
	Claim       func(namespace, name string) *corev1.PersistentVolumeClaim // nil: there is none
	Volume      func(name string) *corev1.PersistentVolume                 // likewise
	Driver      func(name string) *storagev1.CSIDriver                     // likewise
	Now         time.Time
}

// Message is an event on a pod.
type Message struct {
	Pod                *corev1.Pod
	Type, Reason, Text string
}

// Step is what there is to do.
type Step struct {
	Create []*storagev1.VolumeAttachment
	// Report is the node's volumesAttached; Changed: it is another than before.
	Report  []corev1.AttachedVolume
	Changed bool
	// Delete are attachments that nothing needs, of volumes that the node is not shown to have.
	Delete []*storagev1.VolumeAttachment
	Events []Message
	// Again is when to look again though nothing has happened; 0: never.
	Again time.Duration
}

// wanted is a volume that pods of the node use.
type wanted struct {
	volume *corev1.PersistentVolume
	pods   []*corev1.Pod
}

// Decide says what there is to do for a node.
func Decide(f Facts) (s Step) {
	if f.Node != nil && f.Node.Annotations[terms.Managed] != "true" {
		return s // its agent attaches volumes itself, or has none
	}
	want, inUse := wants(f), map[string]bool{}
	left := time.Duration(0)
	if f.Node != nil {
		left = reach(f.Node, f.Now)
		for _, v := range f.Node.Status.VolumesInUse {
			if driver, handle, ok := split(v); ok && left > 0 {
				inUse[terms.AttachmentName(handle, driver, f.Name)] = true
			}
		}
		s.Report = foreign(f.Node.Status.VolumesAttached)
	}
	has := map[string]bool{}
	for _, a := range f.Attachments {
		if a.Spec.NodeName != f.Name || !ours(f, a) {
			continue
		}
		has[a.Name] = true
		_, wanted := want[a.Name]
		switch {
		case a.DeletionTimestamp != nil: // it is being detached
		case wanted || inUse[a.Name]:
			if !wanted && left < unreachable { // it is looked at again when the node is given up
				s.Again = left
			}
			s.show(f, a, want[a.Name])
		case f.Node == nil || !shown(f.Node, a, f):
			s.Delete = append(s.Delete, a)
		}
	}
	if f.Node != nil {
		s.create(f, want, has)
		s.Changed = !slices.Equal(names(s.Report), names(f.Node.Status.VolumesAttached))
	}
	return s
}

// show puts an attachment into the node's status, and records an event at its pods.
func (s *Step) show(f Facts, a *storagev1.VolumeAttachment, w wanted) {
	name, known := uniqueOf(f, a)
	event := func(kind, reason, text string) {
		for _, pod := range w.pods {
			s.Events = append(s.Events, Message{pod, kind, reason, text})
		}
	}
	switch e := a.Status.AttachError; {
	case a.Status.Attached && known:
		if !slices.Contains(names(f.Node.Status.VolumesAttached), name) {
			event(corev1.EventTypeNormal, "SuccessfulAttachVolume",
				fmt.Sprintf("AttachVolume.Attach succeeded for volume %q",
					*a.Spec.Source.PersistentVolumeName))
		}
		s.Report = append(s.Report, corev1.AttachedVolume{Name: name})
	case e != nil:
		event(corev1.EventTypeWarning, "FailedAttachVolume",
			fmt.Sprintf("AttachVolume.Attach failed for volume %q : %s",
				*a.Spec.Source.PersistentVolumeName, e.Message))
	}
}

// create makes attachments for what has none.
func (s *Step) create(f Facts, want map[string]wanted, has map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w := want[name]
		if has[name] {
			continue
		}
		if other := elsewhere(f, w.volume); other != "" {
			for _, pod := range w.pods {
				s.Events = append(s.Events, Message{pod, corev1.EventTypeWarning, "FailedAttachVolume",
					fmt.Sprintf("Multi-Attach error for volume %q Volume is already exclusively attached to one node and "+
						"can't be attached to another: it is on node %s", w.volume.Name, other)})
			}
			continue
		}
		volume := w.volume.Name
		s.Create = append(s.Create, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.VolumeAttachmentSpec{Attacher: w.volume.Spec.CSI.Driver, NodeName: f.Name,
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}})
	}
}

// wants are the volumes that pods of the node use and that are to be attached, by the names of their attachments.
func wants(f Facts) map[string]wanted {
	out := map[string]wanted{}
	for _, pod := range f.Pods {
		if p := pod.Status.Phase; p == corev1.PodSucceeded || p == corev1.PodFailed {
			continue
		}
		for i := range pod.Spec.Volumes {
			v := volumeOf(f, pod, &pod.Spec.Volumes[i])
			if v == nil || v.Spec.CSI == nil || !terms.ObjectOf(f.Driver(v.Spec.CSI.Driver)).Attach {
				continue
			}
			name := terms.AttachmentName(v.Spec.CSI.VolumeHandle, v.Spec.CSI.Driver, f.Name)
			w := out[name]
			w.volume = v
			if !slices.Contains(w.pods, pod) {
				w.pods = append(w.pods, pod)
			}
			out[name] = w
		}
	}
	return out
}

// volumeOf is what the claim of a pod's volume is bound to, nil if there is none.
func volumeOf(f Facts, pod *corev1.Pod, volume *corev1.Volume) *corev1.PersistentVolume {
	name := podspec.ClaimName(pod, volume)
	if name == "" {
		return nil
	}
	claim := f.Claim(pod.Namespace, name)
	if claim == nil || claim.Status.Phase != corev1.ClaimBound || !podspec.OwnsClaim(pod, volume, claim) {
		return nil
	}
	v := f.Volume(claim.Spec.VolumeName)
	if v == nil || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID != claim.UID {
		return nil
	}
	return v
}

// elsewhere is the other node that has a volume which only one may have, "" if none has.
func elsewhere(f Facts, v *corev1.PersistentVolume) string {
	if slices.Contains(v.Spec.AccessModes, corev1.ReadWriteMany) ||
		slices.Contains(v.Spec.AccessModes, corev1.ReadOnlyMany) {
		return ""
	}
	for _, a := range f.Attachments {
		if p := a.Spec.Source.PersistentVolumeName; p != nil && *p == v.Name && a.Spec.NodeName != f.Name {
			return a.Spec.NodeName
		}
	}
	return ""
}

// ours reports whether an attachment is one that this controller makes: others have theirs by other names.
func ours(f Facts, a *storagev1.VolumeAttachment) bool {
	p := a.Spec.Source.PersistentVolumeName
	if p == nil {
		return false
	}
	v := f.Volume(*p)
	if v == nil || v.Spec.CSI == nil { // it is gone: the name cannot be made of it any more
		return len(a.Name) == len(terms.AttachmentName("", "", "")) && strings.HasPrefix(a.Name, "csi-")
	}
	return a.Name == terms.AttachmentName(v.Spec.CSI.VolumeHandle, v.Spec.CSI.Driver, f.Name)
}

// uniqueOf is the name by which a node knows what is attached.
func uniqueOf(f Facts, a *storagev1.VolumeAttachment) (corev1.UniqueVolumeName, bool) {
	if v := f.Volume(*a.Spec.Source.PersistentVolumeName); v != nil && v.Spec.CSI != nil {
		return terms.UniqueName(v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle), true
	}
	if f.Node == nil {
		return "", false
	}
	for _, name := range append(names(f.Node.Status.VolumesAttached), f.Node.Status.VolumesInUse...) {
		if driver, handle, ok := split(name); ok && terms.AttachmentName(handle, driver, f.Name) == a.Name {
			return name, true
		}
	}
	return "", false
}

// shown reports whether the node's status has an attachment.
func shown(n *corev1.Node, a *storagev1.VolumeAttachment, f Facts) bool {
	name, known := uniqueOf(f, a)
	return known && slices.Contains(names(n.Status.VolumesAttached), name)
}

const prefix = "kubernetes.io/csi/"

// split takes the name of a driver's volume apart.
func split(name corev1.UniqueVolumeName) (driver, handle string, ok bool) {
	rest, ok := strings.CutPrefix(string(name), prefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "^")
}

// foreign are volumes that are no drivers': they are reported by somebody else.
func foreign(all []corev1.AttachedVolume) (out []corev1.AttachedVolume) {
	for _, a := range all {
		if !strings.HasPrefix(string(a.Name), prefix) {
			out = append(out, a)
		}
	}
	return out
}

func names(all []corev1.AttachedVolume) (out []corev1.UniqueVolumeName) {
	for _, a := range all {
		out = append(out, a.Name)
	}
	slices.Sort(out)
	return out
}

// reach is how long a node is still believed to use what it says; 0: it is given up.
func reach(n *corev1.Node, now time.Time) time.Duration {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeOutOfService && (t.Effect == corev1.TaintEffectNoExecute ||
			t.Effect == corev1.TaintEffectNoSchedule) {
			return 0
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return max(0, c.LastTransitionTime.Add(unreachable).Sub(now))
		}
	}
	return unreachable
}
