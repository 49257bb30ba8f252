// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// world has a claim data of a class, and volumes.
func world(class string, volumes []*corev1.PersistentVolume, change ...func(*corev1.PersistentVolumeClaim)) World {
	late, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	classes := map[string]*storagev1.StorageClass{
		"local": {ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "wherry.dev/local",
			VolumeBindingMode: &late},
		"by-hand": {Provisioner: storagehelpers.NotSupportedProvisioner, VolumeBindingMode: &late},
		"fast":    {Provisioner: "example.com", VolumeBindingMode: &now},
	}
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "u",
		Annotations: map[string]string{}}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: resource.MustParse("2Gi")}}}}
	for _, f := range change {
		f(c)
	}
	return World{
		Claim: func(_, name string) *corev1.PersistentVolumeClaim {
			if name == c.Name {
				return c
			}
			return nil
		},
		Volume: func(name string) *corev1.PersistentVolume {
			for _, v := range volumes {
				if v.Name == name {
					return v
				}
			}
			return nil
		},
		Class:   func(name string) *storagev1.StorageClass { return classes[name] },
		Volumes: func() []*corev1.PersistentVolume { return volumes },
		Limits:  func(string) map[string]int { return nil },
		Driver:  func(string) *storagev1.CSIDriver { return nil },
		Room:    func() []*storagev1.CSIStorageCapacity { return nil },
		Pods: func(string) []*corev1.Pod {
			other := pod("data")
			other.Name, other.UID, other.Spec.NodeName = "other", "o", "n1"
			return []*corev1.Pod{other, pod("data")}
		},
	}
}

func pod(claim string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "p"}, Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}}}
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelHostname: name}}}
}

// volumeOn is an available volume of a class on a node.
func volumeOn(at, class string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{at}}}}}}}},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
}

func bound(c *corev1.PersistentVolumeClaim) {
	c.Spec.VolumeName, c.Annotations[storagehelpers.AnnBindCompleted] = "v", "yes"
}

func selected(at string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Annotations[storagehelpers.AnnSelectedNode] = at }
}

// TestJudge proves WL-15 and WL-17: what a pod's claims keep it from is said, and it goes where its volumes are.
func TestJudge(t *testing.T) {
	once := func(c *corev1.PersistentVolumeClaim) {
		bound(c)
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
	gone := func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }
	on1 := []*corev1.PersistentVolume{volumeOn("n1", "by-hand")}
	for name, row := range map[string]struct {
		world    World
		claim    string
		refusal  string
		n1, n2   string // what is said of these nodes
		steps    int    // on n1
		reserves bool
		wait     bool
	}{
		"no claim": {world: world("local", nil), claim: "none",
			refusal: `persistentvolumeclaim "none" not found`},
		"being deleted":    {world: world("local", nil, gone), refusal: "is being deleted"},
		"unbound, at once": {world: world("fast", nil), refusal: "unbound immediate PersistentVolumeClaims: data"},
		"volume is gone":   {world: world("", nil, bound), refusal: "non-existent persistentvolume"},
		"for one pod only": {world: world("", on1, once),
			refusal: `pod "other" uses PersistentVolumeClaim "data" already`},
		"bound":      {world: world("", on1, bound), n2: "node affinity"},
		"to be made": {world: world("local", nil), steps: 1, wait: true},
		"being made": {world: world("local", nil, selected("n1")), n2: "being made", wait: true},
		"one is there": {world: world("by-hand", on1), n2: "didn't find available persistent volumes", steps: 1,
			reserves: true, wait: true},
		"none is there": {world: world("by-hand", nil), n1: "didn't find available", n2: "didn't find available"},
	} {
		t.Run(name, func(t *testing.T) {
			if row.claim == "" {
				row.claim = "data"
			}
			v := Judge(pod(row.claim), row.world)
			if (v.Refusal == "") != (row.refusal == "") || !strings.Contains(v.Refusal, row.refusal) {
				t.Fatalf("refusal %q", v.Refusal)
			}
			if row.refusal != "" {
				return
			}
			for at, want := range map[string]string{"n1": row.n1, "n2": row.n2} {
				if got := v.Fits(node(at)); (got == "") != (want == "") || !strings.Contains(got, want) {
					t.Errorf("%s: %q, want %q", at, got, want)
				}
			}
			if row.n1 != "" {
				return
			}
			steps, wait := v.Prepare(node("n1"))
			if len(steps) != row.steps || wait != row.wait ||
				row.steps == 1 && (steps[0].Volume != nil) != row.reserves {
				t.Errorf("%+v, wait %v", steps, wait)
			}
		})
	}
}
