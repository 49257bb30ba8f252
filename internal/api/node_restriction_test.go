// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// nodeWorld has two nodes, a pod with a secret on each, and the clients of their agents.
type nodeWorld struct {
	ns           string
	one, two     string // nodes
	mine, theirs *corev1.Pod
	admin, agent *kubernetes.Clientset
}

func newNodeWorld(t *testing.T) *nodeWorld {
	t.Helper()
	c := client(t)
	w := &nodeWorld{admin: c, ns: namespace(t, c)}
	w.one, w.two = "one-"+w.ns, "two-"+w.ns
	w.agent = clientOf(t, person(t, shared.srv, "system:node:"+w.one, "system:nodes"))
	for _, name := range []string{w.one, w.two} {
		if _, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}) })
	}
	w.mine, w.theirs = w.pod(t, "mine", w.one), w.pod(t, "theirs", w.two)
	return w
}

// pod makes a pod on a node that names a secret, a config map and an account of its own.
func (w *nodeWorld) pod(t *testing.T, name, node string) *corev1.Pod {
	t.Helper()
	ctx, core := t.Context(), w.admin.CoreV1()
	meta := metav1.ObjectMeta{Name: name}
	for _, err := range []error{
		second(core.Secrets(w.ns).Create(ctx, &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{})),
		second(core.Secrets(w.ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name + "-pull"}},
			metav1.CreateOptions{})),
		second(core.ConfigMaps(w.ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})),
		second(core.ServiceAccounts(w.ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta},
			metav1.CreateOptions{})),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p := pod(name)
	p.Spec.ServiceAccountName = name
	p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
	p = createPod(t, w.admin, w.ns, p)
	if err := bindPod(t, w.admin, p, node); err != nil {
		t.Fatal(err)
	}
	return podNow(t, w.admin, w.ns, name)
}

func second[T any](_ T, err error) error { return err }

// A node's agent reads what its own pods refer to, from the moment they are bound, and nothing else.
func TestNodeReads(t *testing.T) {
	w := newNodeWorld(t)
	ctx, core, get := t.Context(), w.agent.CoreV1(), metav1.GetOptions{}
	noRelation := fmt.Sprintf("no relationship found between node %q and this object", w.one)
	fine(t, "own secret", second(core.Secrets(w.ns).Get(ctx, "mine", get)))
	fine(t, "own config map", second(core.ConfigMaps(w.ns).Get(ctx, "mine", get)))
	fine(t, "own account", second(core.ServiceAccounts(w.ns).Get(ctx, "mine", get)))
	fine(t, "own pod", second(core.Pods(w.ns).Get(ctx, "mine", get)))
	fine(t, "own node", second(core.Nodes().Get(ctx, w.one, get)))
	forbidden(t, "another's secret", second(core.Secrets(w.ns).Get(ctx, "theirs", get)),
		`User "system:node:`+w.one+`" cannot get resource "secrets"`, noRelation)
	forbidden(t, "another's config map", second(core.ConfigMaps(w.ns).Get(ctx, "theirs", get)), noRelation)
	forbidden(t, "another's account", second(core.ServiceAccounts(w.ns).Get(ctx, "theirs", get)), noRelation)
	forbidden(t, "another's pod", second(core.Pods(w.ns).Get(ctx, "theirs", get)), noRelation)
	forbidden(t, "another node", second(core.Nodes().Get(ctx, w.two, get)), "only itself")
	forbidden(t, "all secrets", second(core.Secrets(w.ns).List(ctx, metav1.ListOptions{})), "by name")
	fine(t, "own secret by a watch", second(core.Secrets(w.ns).Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=mine", TimeoutSeconds: ptr.To[int64](1)})))
	forbidden(t, "another's secret by a watch", second(core.Secrets(w.ns).Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=theirs"})), noRelation)
	forbidden(t, "a pod by a watch of all namespaces", second(core.Pods("").Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=theirs"})), "spec.nodeName field selector")
	forbidden(t, "all pods", second(core.Pods("").List(ctx, metav1.ListOptions{})), "spec.nodeName field selector")
	forbidden(t, "another's pods", second(core.Pods("").List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + w.two})), "spec.nodeName field selector")
	list, err := core.Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + w.one})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("own pods: %v, %v", list, err)
	}
	// At once, however soon after the binding: the agent hears of it as soon as this server does.
	for i := range 10 {
		name := fmt.Sprint("soon", i)
		w.pod(t, name, w.one)
		fine(t, name, second(core.Secrets(w.ns).Get(ctx, name, get)))
	}
	// A secret for pulling images that only the account names.
	forbidden(t, "a pull secret", second(core.Secrets(w.ns).Get(ctx, "mine-pull", get)))
	_, err = w.admin.CoreV1().ServiceAccounts(w.ns).Patch(ctx, "mine", types.MergePatchType,
		[]byte(`{"imagePullSecrets":[{"name":"mine-pull"}]}`), metav1.PatchOptions{})
	fine(t, "patch", err)
	fine(t, "the account's pull secret", second(core.Secrets(w.ns).Get(ctx, "mine-pull", get)))
	// No longer than the pod is there.
	if err := w.admin.CoreV1().Pods(w.ns).Delete(ctx, "mine",
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	for err == nil { // the graph hears of it by watch
		_, err = core.Secrets(w.ns).Get(ctx, "mine", get)
	}
	forbidden(t, "the secret of a pod that is gone", err, noRelation)
}

// A node's agent writes its own node, lease and pods' status; nothing by which others decide, and nothing of others.
func TestNodeRestriction(t *testing.T) {
	w := newNodeWorld(t)
	ctx, core := t.Context(), w.agent.CoreV1()
	merge := func(name, sub, patch string) error {
		args := []string{}
		if sub != "" {
			args = append(args, sub)
		}
		_, err := core.Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, args...)
		return err
	}
	fine(t, "own labels", merge(w.one, "", `{"metadata":{"labels":{"zone":"a","kubernetes.io/os":"linux"}}}`))
	fine(t, "own status", merge(w.one, "status", `{"status":{"phase":"Running"}}`))
	forbidden(t, "a restricted label",
		merge(w.one, "", `{"metadata":{"labels":{"node-restriction.kubernetes.io/a":"b"}}}`),
		"modify labels: node-restriction.kubernetes.io/a")
	forbidden(t, "a role", merge(w.one, "status", `{"metadata":{"labels":{"node-role.kubernetes.io/a":"b"}}}`),
		"modify labels")
	forbidden(t, "taints", merge(w.one, "", `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`),
		"not allowed to modify taints")
	forbidden(t, "another node", merge(w.two, "", `{"metadata":{"labels":{"zone":"a"}}}`), "only itself")
	forbidden(t, "another node's status", merge(w.two, "status", `{"status":{"phase":"Running"}}`), "only itself")
	forbidden(t, "deletion of itself", core.Nodes().Delete(ctx, w.one, metav1.DeleteOptions{}),
		"cannot delete resource")
	forbidden(t, "a new node of another name", second(core.Nodes().Create(ctx,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.one + "-x"}}, metav1.CreateOptions{})),
		"not allowed to modify node")

	status := func(pod, patch string) error {
		_, err := core.Pods(w.ns).Patch(ctx, pod, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{},
			"status")
		return err
	}
	fine(t, "own pod's status", status("mine", `{"status":{"message":"hello"}}`))
	forbidden(t, "another pod's status", status("theirs", `{"status":{"message":"hello"}}`), "no relationship")
	forbidden(t, "an ephemeral container", second(core.Pods(w.ns).Patch(ctx, "mine", types.StrategicMergePatchType,
		[]byte(`{"spec":{"ephemeralContainers":[{"name":"d","image":"x"}]}}`), metav1.PatchOptions{},
		"ephemeralcontainers")), `cannot patch resource "pods/ephemeralcontainers"`)
	forbidden(t, "a pod", second(core.Pods(w.ns).Create(ctx, pod("own"), metav1.CreateOptions{})),
		"can only create mirror pods")
	mirror := pod("mirror")
	mirror.Annotations, mirror.Spec.NodeName = map[string]string{corev1.MirrorPodAnnotationKey: "x"}, w.two
	forbidden(t, "a mirror pod elsewhere", second(core.Pods(w.ns).Create(ctx, mirror, metav1.CreateOptions{})),
		"spec.nodeName set to itself")
	mirror.Spec.NodeName = w.one
	fine(t, "a mirror pod", second(core.Pods(w.ns).Create(ctx, mirror, metav1.CreateOptions{})))
	none := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	fine(t, "its deletion", core.Pods(w.ns).Delete(ctx, "mirror", none))
	forbidden(t, "another's pod deleted", core.Pods(w.ns).Delete(ctx, "theirs", none), "no relationship")
	forbidden(t, "another's pod evicted", core.Pods(w.ns).EvictV1(ctx,
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: w.ns}}), "no relationship")

	token := func(account string, ref *authenticationv1.BoundObjectReference, audiences ...string) error {
		_, err := core.ServiceAccounts(w.ns).CreateToken(ctx, account,
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: ref,
				Audiences: audiences}}, metav1.CreateOptions{})
		return err
	}
	to := func(p *corev1.Pod) *authenticationv1.BoundObjectReference {
		return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}
	}
	fine(t, "a token of its pod", token("mine", to(w.mine)))
	forbidden(t, "one that outlives the pod", token("mine", nil), "not bound to a pod")
	forbidden(t, "one for a bank", token("mine", to(w.mine), "bank"), `audience "bank" not found`)
	forbidden(t, "one of another's account", token("theirs", to(w.theirs)), "no relationship")
	forbidden(t, "one bound to another's pod", token("mine", to(w.theirs)), "scheduled on a different node")

	lease := func(ns, name string) error {
		_, err := w.agent.CoordinationV1().Leases(ns).Create(ctx,
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	fine(t, "own lease", lease("kube-node-lease", w.one))
	forbidden(t, "another's lease", lease("kube-node-lease", w.two), "same name as the requesting node")
	forbidden(t, "a lease elsewhere", lease(w.ns, w.one),
		`can only access leases in the "kube-node-lease" system namespace`)

	nobody := clientOf(t, person(t, shared.srv, "kubelet", "system:nodes"))
	forbidden(t, "a member of the group who is no node", second(nobody.CoreV1().Nodes().Get(ctx, w.one,
		metav1.GetOptions{})))
	if now := podNow(t, w.admin, w.ns, "theirs"); now.DeletionTimestamp != nil || now.Status.Message != "" {
		t.Errorf("another's pod changed: %+v", now)
	}
	if _, err := w.admin.CoreV1().Nodes().Get(ctx, w.one, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		t.Error("the node is gone")
	}
}
