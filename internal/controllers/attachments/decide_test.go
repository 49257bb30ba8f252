// SPDX-License-Identifier: Apache-2.0

package attachments

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/node/csi/terms"
)

const unique = corev1.UniqueVolumeName("kubernetes.io/csi/d^h")

func node(change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{terms.Managed: "true"}}}
	for _, c := range change {
		c(n)
	}
	return n
}

func using(n *corev1.Node) { n.Status.VolumesInUse = []corev1.UniqueVolumeName{unique} }

func told(n *corev1.Node) {
	n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: unique})
}

func unready(since time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
			LastTransitionTime: metav1.NewTime(now().Add(-since))}}
	}
}

func now() time.Time { return time.Unix(1e9, 0) }

func attachment(name string, change ...func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: terms.AttachmentName("h", "d", name)},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: name,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv")}}}
	for _, c := range change {
		c(a)
	}
	return a
}

func attached(a *storagev1.VolumeAttachment) { a.Status.Attached = true }

// WL-17: when a volume is attached to a node, told of, and detached.
func TestDecide(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n",
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}}}
	ended := pod.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		ClaimRef:    &corev1.ObjectReference{UID: "c"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d",
			VolumeHandle: "h"}}}}
	many := pv.DeepCopy()
	many.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	quiet := &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}}
	failed := func(a *storagev1.VolumeAttachment) {
		a.Status.AttachError = &storagev1.VolumeError{Message: "no room"}
	}
	leaving := func(a *storagev1.VolumeAttachment) { a.DeletionTimestamp = ptr.To(metav1.Now()) }
	others := func(a *storagev1.VolumeAttachment) { a.Name = "by-hand" }
	taint := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	}
	type list = []*storagev1.VolumeAttachment
	for name, row := range map[string]struct {
		node   *corev1.Node
		pod    *corev1.Pod
		pv     *corev1.PersistentVolume
		driver *storagev1.CSIDriver
		has    list
		want   string // what is done
		again  time.Duration
	}{
		"a pod comes":                 {node: node(), pod: pod, pv: pv, want: "create"},
		"its driver attaches nothing": {node: node(), pod: pod, pv: pv, driver: quiet},
		"its node attaches itself": {node: node(func(n *corev1.Node) { n.Annotations = nil }), pod: pod,
			pv: pv},
		"it has ended":   {node: node(), pod: ended, pv: pv},
		"being attached": {node: node(), pod: pod, pv: pv, has: list{attachment("n")}},
		"attached": {node: node(), pod: pod, pv: pv, has: list{attachment("n", attached)},
			want: "report tell:SuccessfulAttachVolume"},
		"attached and told": {node: node(told), pod: pod, pv: pv, has: list{attachment("n", attached)}},
		"not attached": {node: node(), pod: pod, pv: pv, has: list{attachment("n", failed)},
			want: "tell:FailedAttachVolume"},
		"on another node": {node: node(), pod: pod, pv: pv, has: list{attachment("other", attached)},
			want: "tell:FailedAttachVolume"},
		"on another node, for many": {node: node(), pod: pod, pv: many, has: list{attachment("other", attached)},
			want: "create"},
		"the pod has gone, in use": {node: node(told, using), pv: pv, has: list{attachment("n", attached)}},
		"the pod has gone": {node: node(told), pv: pv, has: list{attachment("n", attached)},
			want: "report"},
		"gone, and the node knows": {node: node(), pv: pv, has: list{attachment("n", attached)},
			want: "delete"},
		"gone, begun to be used anew": {node: node(using), pv: pv, has: list{attachment("n", attached)},
			want: "report"},
		"gone, and the volume, too":  {node: node(told), has: list{attachment("n", attached)}, want: "report"},
		"gone, the volume, the node": {has: list{attachment("n", attached)}, want: "delete"},
		"is being detached":          {node: node(), pv: pv, has: list{attachment("n", leaving)}},
		"somebody else's":            {node: node(), pv: pv, has: list{attachment("n", others)}},
		"in use, out of reach": {node: node(told, using, unready(5*time.Minute)), pv: pv,
			has: list{attachment("n", attached)}, again: time.Minute},
		"in use, out of reach for long": {node: node(using, unready(7*time.Minute)), pv: pv,
			has: list{attachment("n", attached)}, want: "delete"},
		"in use, out of service": {node: node(using, taint), pv: pv, has: list{attachment("n", attached)},
			want: "delete"},
		"the pod waits, is being detached": {node: node(), pod: pod, pv: pv, has: list{attachment("n", leaving)}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Name: "n", Node: row.node, Attachments: row.has, Now: now(),
				Claim: func(_, name string) *corev1.PersistentVolumeClaim {
					return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "c"},
						Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
						Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
				},
				Volume: func(string) *corev1.PersistentVolume { return row.pv },
				Driver: func(string) *storagev1.CSIDriver { return row.driver }}
			if row.pod != nil {
				f.Pods = []*corev1.Pod{row.pod}
			}
			s := Decide(f)
			var did []string
			for range s.Create {
				did = append(did, "create")
			}
			if s.Changed {
				did = append(did, "report")
			}
			for range s.Delete {
				did = append(did, "delete")
			}
			for _, m := range s.Events {
				did = append(did, "tell:"+m.Reason)
			}
			if got := strings.Join(did, " "); got != row.want || s.Again != row.again {
				t.Errorf("%s, again in %s; want %s, %s", got, s.Again, row.want, row.again)
			}
		})
	}
}

// WL-17: what others tell of volumes of other kinds stays.
func TestForeignStays(t *testing.T) {
	f := Facts{Name: "n", Now: now(), Node: node(told, func(n *corev1.Node) {
		n.Status.VolumesAttached = append(n.Status.VolumesAttached,
			corev1.AttachedVolume{Name: "kubernetes.io/iscsi/x"})
	}), Volume: func(string) *corev1.PersistentVolume { return nil }}
	if s := Decide(f); !s.Changed || len(s.Report) != 1 || s.Report[0].Name != "kubernetes.io/iscsi/x" {
		t.Errorf("%+v", s)
	}
}
