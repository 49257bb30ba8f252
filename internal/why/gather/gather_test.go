// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/why"
)

func meta(name string, uid types.UID, owner ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid, OwnerReferences: owner}
}

func ownedBy(kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}
}

func set(name string, uid types.UID, revision, image string) *appsv1.ReplicaSet {
	s := &appsv1.ReplicaSet{ObjectMeta: meta(name, uid, ownedBy("Deployment", "web", "d"))}
	s.Labels = map[string]string{"app": "web"}
	s.Annotations = map[string]string{"deployment.kubernetes.io/revision": revision}
	s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: image}}
	return s
}

// DA-11: a pod's owner is the Deployment above its ReplicaSet, and what its rollout changed is seen beside the revision
// before, not beside an older or a newer one.
func TestOwners(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: meta("web", "d")}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	g := &gatherer{namespace: "shop", client: fake.NewClientset(deployment, set("web-1", "r1", "9", "a:9"),
		set("web-2", "r2", "10", "a:10"), set("web-3", "r3", "11", "a:11"), set("web-4", "r4", "12", "a:12"))}
	g.owners(t.Context(), &corev1.Pod{ObjectMeta: meta("web-3-x", "p", ownedBy("ReplicaSet", "web-3", "r3"))})
	if len(g.facts.Owners) != 1 || g.facts.Owners[0].Name != "web" ||
		!slices.Equal(g.facts.Owners[0].Diff, []string{"image a:10 → a:11 of container web"}) {
		t.Errorf("%+v, not seen %+v", g.facts.Owners, g.facts.Unseen)
	}
	g.facts = why.Facts{}
	g.owners(t.Context(), &corev1.Pod{ObjectMeta: meta("web-3-x", "p",
		ownedBy("ReplicaSet", "web-3", "of one that is gone"))})
	if len(g.facts.Owners) != 0 {
		t.Errorf("another one of the same name: %+v", g.facts.Owners)
	}
}

// DA-11: the events of a static pod are those that its node has written too, which knows it by another UID.
func TestEventsOfStaticPods(t *testing.T) {
	client := fake.NewClientset()
	g := &gatherer{namespace: "shop", client: client}
	pod := &corev1.Pod{ObjectMeta: meta("web-node", "p")}
	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "m"}
	g.pod(t.Context(), pod)
	var asked []string
	for _, a := range client.Actions() {
		if list, ok := a.(clienttesting.ListAction); ok && a.Matches("list", "events") {
			asked = append(asked, list.GetListRestrictions().Fields.String())
		}
	}
	if !slices.Equal(asked, []string{"involvedObject.uid=p", "involvedObject.uid=m"}) {
		t.Errorf("%q", asked)
	}
}

// DA-11: of what a pod refers to it is known whether it is there and which keys it has; no value of a Secret is among
// the facts.
func TestObjects(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("data", "c")}
	claim.Spec.StorageClassName, claim.Status.Phase = ptr.To("slow"), corev1.ClaimPending
	slow := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "slow", Annotations: map[string]string{
		"storageclass.kubernetes.io/is-default-class": "true"}},
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	g := &gatherer{namespace: "shop", client: fake.NewClientset(claim, slow,
		&corev1.Secret{ObjectMeta: meta("login", "s"), Data: map[string][]byte{"b": []byte("hush"),
			"a": []byte("hush")}},
		&corev1.ConfigMap{ObjectMeta: meta("settings", "m"), Data: map[string]string{"z": ""},
			BinaryData: map[string][]byte{"y": nil}})}
	pod := &corev1.Pod{ObjectMeta: meta("web", "p")}
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "login"}}
	volume := func(s corev1.VolumeSource) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: s})
	}
	volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}})
	volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}})
	volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}}})
	g.objects(t.Context(), pod)
	got := ""
	for _, o := range g.facts.Objects {
		got += fmt.Sprintln(o.Kind, o.Name, o.Missing, o.Keys, o.Phase, o.Classes, o.Late)
	}
	const want = `PersistentVolumeClaim data false [] Pending [slow (default)] true
ConfigMap settings false [z y]  [] false
ConfigMap none true []  [] false
Secret login false [a b]  [] false
`
	if got != want || len(g.facts.Unseen) > 0 {
		t.Errorf("%s, not seen %v; want\n%s", got, g.facts.Unseen, want)
	}
}

// DA-11: what is free on a node is what its pods have not asked for; who answers for a Service is counted.
func TestNodesAndServices(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	placed := &corev1.Pod{ObjectMeta: meta("db", "d")}
	placed.Labels, placed.Spec.NodeName = map[string]string{"app": "db"}, "n1"
	placed.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("300m")}}}}
	service := &corev1.Service{ObjectMeta: meta("db", "s")}
	service.Spec.ClusterIPs, service.Spec.Selector = []string{"10.0.0.9"}, placed.Labels
	endpoints := &discoveryv1.EndpointSlice{ObjectMeta: meta("db-1", "e"), Endpoints: []discoveryv1.Endpoint{
		{}, {Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}}}}
	endpoints.Labels = map[string]string{discoveryv1.LabelServiceName: "db"}
	g := &gatherer{namespace: "shop", client: fake.NewClientset(node, placed, service, endpoints)}
	g.nodes(t.Context(), &corev1.Pod{ObjectMeta: meta("web", "p")})
	if n := g.facts.Nodes; len(n) != 1 || n[0].Pods != 1 || n[0].Requested.Cpu().String() != "300m" {
		t.Errorf("%+v", n)
	}
	g.facts.Logs = []why.Log{{Container: "c", Lines: []string{"dial tcp 10.0.0.9:5432: connect: connection refused"}}}
	g.services(t.Context())
	if s := g.facts.Services; len(s) != 1 || !s[0].Known || s[0].Ready != 1 || s[0].Unready != 1 || s[0].Chosen != 1 {
		t.Errorf("%+v", s)
	}
}
