// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/api/nodeauth"
	"github.com/wherryproject/wherry/internal/api/rbac"
)

func podOn(node, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{
		NodeName: node, ServiceAccountName: name + "-account",
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: name + "-pull"}},
		Containers: []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name + "-secret"}}}}}}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name + "-map"}}}}},
	}}
}

// TestJudge: what node n1 may do, with pod "mine" on it and pod "theirs" on n2, from the page "Using Node Authorization". Lines: yes or
// no, verb, what (resource, subresource, group), namespace, name ("-": none), and of=NODE for a field selector spec.nodeName.
func TestJudge(t *testing.T) {
	g := nodeauth.NewGraph()
	g.Put(podOn("n1", "mine"))
	g.Put(podOn("n2", "theirs"))
	g.Put(podOn("", "nobodys"))
	for _, line := range strings.Split(strings.TrimSpace(`
yes get    nodes - n1
no  get    nodes - n2
no  list   nodes - -
yes watch  nodes - n1
no  watch  nodes - -
yes create nodes - -
yes update nodes - n1
no  patch  nodes - n2
yes patch  nodes/status - n1
no  update nodes/status - n2
no  delete nodes - n1
no  get    nodes/proxy - n1
no  deletecollection nodes - -

yes get    pods ns mine
no  get    pods ns theirs
no  get    pods ns nobodys
no  get    pods ns none
no  get    pods other mine
yes list   pods - - of=n1
no  list   pods - - of=n2
no  list   pods - -
yes watch  pods - - of=n1
no  watch  pods ns -
yes watch  pods ns mine
no  watch  pods - mine
yes watch  pods - mine of=n1
yes create pods ns -
yes delete pods ns mine
no  delete pods ns theirs
no  deletecollection pods ns -
no  update pods ns mine
yes patch  pods/status ns mine
yes update pods/status ns mine
no  patch  pods/status ns theirs
yes create pods/eviction ns mine
no  create pods/eviction ns theirs
no  update pods/ephemeralcontainers ns mine
no  create pods/exec ns mine
no  get    pods/log ns mine
no  create pods/binding ns mine

yes get    secrets ns mine-secret
yes watch  secrets ns mine-secret
yes list   secrets ns mine-secret
yes get    secrets ns mine-pull
no  get    secrets ns theirs-secret
no  get    secrets ns nobodys-secret
no  get    secrets other mine-secret
no  list   secrets ns -
no  list   secrets - -
no  watch  secrets - mine-secret
no  update secrets ns mine-secret
no  delete secrets ns mine-secret
no  get    secrets ns mine-map
yes get    configmaps ns mine-map
no  get    configmaps ns theirs-map
no  list   configmaps ns -
no  get    configmaps ns mine-secret
no  create configmaps ns -

yes get    serviceaccounts ns mine-account
no  get    serviceaccounts ns theirs-account
no  list   serviceaccounts ns -
no  update serviceaccounts ns mine-account
yes create serviceaccounts/token ns mine-account
no  create serviceaccounts/token ns theirs-account
no  create serviceaccounts/token other mine-account

yes get    leases.coordination.k8s.io kube-node-lease n1
yes update leases.coordination.k8s.io kube-node-lease n1
yes create leases.coordination.k8s.io kube-node-lease -
no  get    leases.coordination.k8s.io kube-node-lease n2
no  update leases.coordination.k8s.io kube-node-lease n2
no  get    leases.coordination.k8s.io kube-system n1
no  create leases.coordination.k8s.io ns -
no  list   leases.coordination.k8s.io kube-node-lease -

yes create certificatesigningrequests.certificates.k8s.io - -
yes get    certificatesigningrequests.certificates.k8s.io - x
no  update certificatesigningrequests/approval.certificates.k8s.io - x
no  delete certificatesigningrequests.certificates.k8s.io - x
yes create events ns -
yes patch  events ns e
yes create events.events.k8s.io ns -
no  list   events ns -
no  delete events ns e
yes list   services - -
no  update services ns s
yes list   runtimeclasses.node.k8s.io - -
yes create tokenreviews.authentication.k8s.io - -
yes create subjectaccessreviews.authorization.k8s.io - -
no  list   namespaces - -
no  list   roles.rbac.authorization.k8s.io ns -
no  create clusterrolebindings.rbac.authorization.k8s.io - -
no  impersonate users - root
no  list   debugruns.debug.wherry.dev ns -
no  create imageexecs.debug.wherry.dev ns mine
`), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		r := nodeauth.Request{Request: rbac.Request{Verb: f[1]}}
		what, group, _ := strings.Cut(f[2], ".")
		r.Group = group
		r.Resource, r.Subresource, _ = strings.Cut(what, "/")
		if f[3] != "-" {
			r.Namespace = f[3]
		}
		if f[4] != "-" {
			r.Name = f[4]
		}
		if len(f) > 5 {
			r.OfNode = strings.TrimPrefix(f[5], "of=")
		}
		v := nodeauth.Judge("n1", &r, rbac.NodeRules())
		got := v.Allowed || v.Need != nil && g.Has("n1", *v.Need)
		if got != (f[0] == "yes") {
			t.Errorf("%s: %t, %+v", line, got, v)
		}
	}
}

// A pod that moves, changes or goes takes its references along; what another pod still refers to stays.
func TestGraph(t *testing.T) {
	g := nodeauth.NewGraph()
	secret := nodeauth.Ref{Kind: nodeauth.Secret, Namespace: "ns", Name: "a-secret"}
	has := func(step string, want bool) {
		t.Helper()
		if got := g.Has("n1", secret); got != want {
			t.Errorf("%s: %t", step, got)
		}
	}
	has("empty", false)
	a := podOn("", "a")
	g.Put(a)
	has("not bound", false)
	g.Put(podOn("n1", "a"))
	has("bound", true)
	g.Put(podOn("n1", "a"))
	has("told again", true)
	other := podOn("n1", "b")
	other.Spec.Containers[0].Env[0].ValueFrom.SecretKeyRef.Name = "a-secret"
	g.Put(other)
	g.Delete("ns", "a")
	has("one of two gone", true)
	g.Delete("ns", "b")
	has("both gone", false)
	g.Delete("ns", "b")
	g.Put(podOn("n1", "a"))
	has("back", true)
	g.Put(podOn("n2", "a")) // another pod of the name
	has("elsewhere", false)
	g.Replace(nil)
	if g.Has("n2", secret) {
		t.Error("a whole list leaves what is not in it")
	}
}

// A node's agent is known by its name and its group together.
func TestNodeOf(t *testing.T) {
	for _, test := range []struct {
		user, groups, node string
	}{
		{"system:node:n1", "system:nodes", "n1"},
		{"system:node:n1", "system:authenticated", ""},
		{"system:node:", "system:nodes", ""},
		{"kubelet", "system:nodes", ""},
		{"system:nodes:n1", "system:nodes", ""},
	} {
		node, ok := nodeauth.NodeOf(test.user, strings.Fields(test.groups))
		if ok != (test.node != "") || ok && node != test.node {
			t.Errorf("%+v: %q, %t", test, node, ok)
		}
	}
}
