// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// PL-01 A binding gives a pod to a node once and sets PodScheduled; a second one is a conflict.
func TestBinding(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	p := boundPod(t, c, ns, pod("p"))
	if p.Spec.NodeName != "node-1" {
		t.Errorf("node %q", p.Spec.NodeName)
	}
	if len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Type != corev1.PodScheduled ||
		p.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("conditions: %v", p.Status.Conditions)
	}
	if err := bindPod(t, c, p, "node-2"); !apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), `already assigned to node "node-1"`) {
		t.Errorf("second binding: %v", err)
	}
	other := createPod(t, c, ns, pod("other"))
	err := c.CoreV1().Pods(ns).Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "not-" + other.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "n"},
	}, metav1.CreateOptions{})
	if !apierrors.IsConflict(err) {
		t.Errorf("binding of a pod with another uid: %v", err)
	}
	err = c.CoreV1().Pods(ns).Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "other"},
		Target: corev1.ObjectReference{Kind: "Service", Name: ""}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "target.name") ||
		!strings.Contains(err.Error(), "target.kind") {
		t.Errorf("binding to nothing: %v", err)
	}
	if err := bindPod(t, c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "ghost", Namespace: ns}},
		"n"); !apierrors.IsNotFound(err) {
		t.Errorf("binding of no pod: %v", err)
	}
}

// What the server adds to a new pod, and what it takes away (PL-01, PL-05).
func TestNewPod(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	p := pod("p")
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "1.2.3.4"}
	p.Generation = 77
	p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "x"}}
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	p = createPod(t, c, ns, p)

	if p.Status.Phase != corev1.PodPending || p.Status.PodIP != "" || p.Status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("status %+v", p.Status)
	}
	if p.Generation != 1 {
		t.Errorf("generation %d", p.Generation)
	}
	if p.Spec.ServiceAccountName != "default" || ptr.Deref(p.Spec.Priority, -1) != 0 {
		t.Errorf("account %q, priority %v", p.Spec.ServiceAccountName, p.Spec.Priority)
	}
	var volume *corev1.Volume
	for i := range p.Spec.Volumes {
		if strings.HasPrefix(p.Spec.Volumes[i].Name, "kube-api-access-") {
			volume = &p.Spec.Volumes[i]
		}
	}
	if volume == nil || volume.Projected == nil || len(volume.Projected.Sources) != 3 {
		t.Fatalf("volumes %+v", p.Spec.Volumes)
	}
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		m := containers[0].VolumeMounts
		if len(m) != 1 || m[0].Name != volume.Name || !m[0].ReadOnly ||
			m[0].MountPath != "/var/run/secrets/kubernetes.io/serviceaccount" {
			t.Errorf("mounts of %s: %+v", containers[0].Name, m)
		}
	}
	if len(p.Spec.Tolerations) != 2 || ptr.Deref(p.Spec.Tolerations[0].TolerationSeconds, 0) != 300 {
		t.Errorf("tolerations %+v", p.Spec.Tolerations)
	}

	quiet := pod("quiet")
	quiet.Spec.AutomountServiceAccountToken = ptr.To(false)
	quiet.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	quiet.Spec.PriorityClassName = "system-node-critical"
	quiet = createPod(t, c, ns, quiet)
	if len(quiet.Spec.Volumes) != 0 || len(quiet.Spec.Tolerations) != 1 ||
		ptr.Deref(quiet.Spec.Priority, 0) != 2000001000 {
		t.Errorf("volumes %v, tolerations %v, priority %v", quiet.Spec.Volumes, quiet.Spec.Tolerations,
			quiet.Spec.Priority)
	}

	sa, err := c.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "puller"}, AutomountServiceAccountToken: ptr.To(false),
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pulled := pod("pulled")
	pulled.Spec.ServiceAccountName = sa.Name
	pulled = createPod(t, c, ns, pulled)
	if len(pulled.Spec.ImagePullSecrets) != 1 || pulled.Spec.ImagePullSecrets[0].Name != "registry" ||
		len(pulled.Spec.Volumes) != 0 {
		t.Errorf("pull secrets %v, volumes %v", pulled.Spec.ImagePullSecrets, pulled.Spec.Volumes)
	}
}

// PL-12 A mirror pod has no account, and so nothing that goes by accounts: neither one of its own choice, nor secrets,
// nor tokens.
func TestMirrorPodRefusals(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	for want, change := range map[string]func(*corev1.PodSpec){
		"":                                   func(*corev1.PodSpec) {},
		"may not reference service accounts": func(s *corev1.PodSpec) { s.ServiceAccountName = "default" },
		"may not reference secrets": func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v",
				VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
		},
		"may not use ServiceAccountToken volume projections": func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v",
				VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}}}}}}
		},
	} {
		p := pod("mirror")
		p.Annotations, p.Spec.NodeName = map[string]string{corev1.MirrorPodAnnotationKey: "x"}, "n"
		change(&p.Spec)
		_, err := c.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
		if want == "" && err != nil || want != "" && (!apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// A pod made right after its namespace waits for the default account instead of failing.
func TestPodWaitsForDefaultAccount(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	accounts := c.CoreV1().ServiceAccounts(ns)
	if err := accounts.Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := c.CoreV1().Pods(ns).Create(t.Context(), pod("p"), metav1.CreateOptions{})
		result <- err
	}()
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// The status changes only through the status subresource, the spec only through the pod; the spec's changes count.
func TestStatusAndSpecAreApart(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	pods := c.CoreV1().Pods(ns)
	p := boundPod(t, c, ns, pod("p"))
	p.Status.Phase = corev1.PodRunning
	p.Status.PodIP, p.Status.PodIPs = "10.1.1.1", []corev1.PodIP{{IP: "10.1.1.1"}}
	p.Spec.Containers[0].Image = "other"
	p, err := pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Status.Phase != corev1.PodRunning || p.Spec.Containers[0].Image == "other" || p.Generation != 1 {
		t.Errorf("after the status update: %+v, generation %d", p, p.Generation)
	}
	p.Spec.Containers[0].Image = "other"
	p.Status.Phase = corev1.PodFailed
	p, err = pods.Update(t.Context(), p, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Status.Phase != corev1.PodRunning || p.Spec.Containers[0].Image != "other" || p.Generation != 2 {
		t.Errorf("after the update: phase %s, image %s, generation %d", p.Status.Phase, p.Spec.Containers[0].Image,
			p.Generation)
	}
	p, err = pods.Patch(t.Context(), "p", types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Status.Conditions) != 2 { // merged by type with PodScheduled
		t.Errorf("conditions %v", p.Status.Conditions)
	}
}

// Every documented field selector of pods works, in lists and watches.
func TestPodFieldSelectors(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	pods := c.CoreV1().Pods(ns)
	plain := createPod(t, c, ns, pod("plain"))
	plain.Status.NominatedNodeName = "nominee"
	if _, err := pods.UpdateStatus(t.Context(), plain, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	special := pod("special")
	special.Spec.RestartPolicy = corev1.RestartPolicyNever
	special.Spec.SchedulerName = "mine"
	special.Spec.HostNetwork = true
	special = boundPod(t, c, ns, special)
	special.Status.Phase = corev1.PodRunning
	special.Status.PodIP, special.Status.PodIPs = "10.9.9.9", []corev1.PodIP{{IP: "10.9.9.9"}}
	if _, err := pods.UpdateStatus(t.Context(), special, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]string{
		"metadata.name=special":            "special",
		"metadata.namespace=" + ns:         "plain special",
		"spec.nodeName=node-1":             "special",
		"spec.nodeName=":                   "plain",
		"status.phase=Running":             "special",
		"status.phase!=Running":            "plain",
		"spec.restartPolicy=Never":         "special",
		"spec.schedulerName=mine":          "special",
		"spec.serviceAccountName=default":  "plain special",
		"status.podIP=10.9.9.9":            "special",
		"spec.hostNetwork=true":            "special",
		"status.nominatedNodeName=nominee": "plain",
	} {
		list, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Errorf("%s: %v", selector, err)
			continue
		}
		var names []string
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %q, want %q", selector, got, want)
		}
	}
}

// EC-01 Ephemeral containers and their statuses are on the wire as k8s.io/api has them: what a client of that type
// reads back from JSON and protobuf is what the type says.
func TestWireForm(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	p := boundPod(t, c, ns, pod("p"))
	p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", Image: "x", ImageID: "y"}}
	body,
		err := json.Marshal(map[string]any{"status": map[string]any{"ephemeralContainerStatuses": p.Status.EphemeralContainerStatuses}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "p", types.MergePatchType, body, metav1.PatchOptions{},
		"status"); err != nil {
		t.Fatal(err)
	}
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		var got corev1.Pod
		if err := c.CoreV1().RESTClient().Get().Namespace(ns).Resource("pods").Name("p").SetHeader("Accept",
			accept).Do(t.Context()).Into(&got); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.Status.EphemeralContainerStatuses) != fmt.Sprint(p.Status.EphemeralContainerStatuses) {
			t.Errorf("%s: %v", accept, got.Status.EphemeralContainerStatuses)
		}
	}
	schema, err := c.Discovery().OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := schema["api/v1"].Schema("application/json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"EphemeralContainer", "targetContainerName", "ephemeralContainerStatuses"} {
		if !strings.Contains(string(doc), name) {
			t.Errorf("OpenAPI does not know %s", name)
		}
	}
}

// TestTopologyLabels: a pod that is given to a node gets the node's zone and region as labels, over its own, and what else
// labels of the binding say; one that is made on a node too. Proves WL-07.
func TestTopologyLabels(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "zoned-" + ns, Labels: map[string]string{
		corev1.LabelTopologyZone: "z1", corev1.LabelTopologyRegion: "r1", "topology.kubernetes.io/rack": "7"}}}
	if _, err := c.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CoreV1().Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{}) })
	expect := func(name, own string) {
		t.Helper()
		p, err := c.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Labels[corev1.LabelTopologyZone] != "z1" || p.Labels[corev1.LabelTopologyRegion] != "r1" || p.Labels["own"] != own ||
			p.Labels["topology.kubernetes.io/rack"] != "" {
			t.Errorf("%s has the labels %v", name, p.Labels)
		}
	}
	bound := pod("bound")
	bound.Labels = map[string]string{"own": "pod", corev1.LabelTopologyZone: "elsewhere"}
	createPod(t, c, ns, bound)
	bind := func(labels map[string]string) error {
		return c.CoreV1().Pods(ns).Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "bound", Labels: labels},
			Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}, metav1.CreateOptions{})
	}
	if err := bind(map[string]string{"own": "no label!"}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.labels") {
		t.Errorf("with a label that is none: %v", err)
	}
	if err := bind(map[string]string{"own": "binding"}); err != nil {
		t.Fatal(err)
	}
	expect("bound", "binding")
	made := pod("made")
	made.Spec.NodeName = node.Name
	createPod(t, c, ns, made)
	expect("made", "")
}
