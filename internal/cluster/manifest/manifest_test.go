// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	registration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

func defaults(t *testing.T) Values {
	t.Helper()
	v, err := Defaults()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func objects(t *testing.T, v Values) []*unstructured.Unstructured {
	t.Helper()
	all, err := Objects(v, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// typed reads all documents strictly: a field that Kubernetes does not have is an error.
func typed(t *testing.T, v Values) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, registration.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for _, o := range objects(t, v) {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		all = append(all, object)
	}
	return all
}

func one[T runtime.Object](t *testing.T, all []runtime.Object, is func(T) bool) T {
	t.Helper()
	for _, o := range all {
		if found, ok := o.(T); ok && (is == nil || is(found)) {
			return found
		}
	}
	var none T
	t.Fatalf("there is no such %T", none)
	return none
}

// full are values of which none is the default.
func full(t *testing.T) Values {
	t.Helper()
	v, err := Parse([]byte(`
namespace: elsewhere
createNamespace: false
image: registry.example.com:5000/wherry@sha256:` + strings.Repeat("a", 64) + `
imagePullPolicy: Always
imagePullSecrets: [login, "other"]
priorityClass: system-node-critical
agent:
  nodeSelector: {pool: "1", kubernetes.io/os: null}
  tolerations: []
  criSocket: /run/crio/crio.sock
  resources: null
api:
  replicas: 3
  tolerations: [{key: a, operator: Exists, effect: NoSchedule}]
limits: {maxTTL: 30m, maxMemory: 512Mi}
aggregateToDefaultRoles: true
`))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestObjectsAreKubernetes(t *testing.T) {
	for name, v := range map[string]Values{"defaults": defaults(t), "all other": full(t)} {
		t.Run(name, func(t *testing.T) {
			kinds := map[string]int{}
			for _, o := range typed(t, v) {
				kinds[o.GetObjectKind().GroupVersionKind().Kind]++
			}
			want := map[string]int{"Namespace": 1, "ServiceAccount": 2, "Secret": 1, "ClusterRole": 5, "ClusterRoleBinding": 2,
				"Role": 1, "RoleBinding": 2, "Service": 1, "NetworkPolicy": 2, "DaemonSet": 1, "Deployment": 1,
				"PodDisruptionBudget": 1, "APIService": 1}
			if !v.CreateNamespace {
				delete(want, "Namespace")
			}
			for kind, n := range want {
				if kinds[kind] != n {
					t.Errorf("%d of kind %s, want %d", kinds[kind], kind, n)
				}
			}
			if len(kinds) != len(want) {
				t.Errorf("kinds: %v", kinds)
			}
		})
	}
}

// What is removed is found by its labels, and every object is in the namespace that was chosen.
func TestLabelsAndNamespace(t *testing.T) {
	for _, o := range objects(t, full(t)) {
		labels := o.GetLabels()
		for k, v := range Label().MatchLabels {
			if labels[k] != v {
				t.Errorf("%s %s: label %s is %q", o.GetKind(), o.GetName(), k, labels[k])
			}
		}
		if labels["app.kubernetes.io/name"] == "" || labels["app.kubernetes.io/version"] != "v1.2.3" {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), labels)
		}
		if ns := o.GetNamespace(); ns != "" && ns != "elsewhere" && ns != "kube-system" {
			t.Errorf("%s %s is in %s", o.GetKind(), o.GetName(), ns)
		}
	}
}

// DA-07: the agents' account has no right but to ask for a certificate, wherever it is bound.
func TestAgentMayOnlyAskForItsCertificate(t *testing.T) {
	all := typed(t, defaults(t))
	rules := rulesOf(all, "wherry-debug-agent")
	if len(rules) == 0 {
		t.Fatal("the agents' account is bound to nothing")
	}
	for _, r := range rules {
		if !slices.Equal(r.APIGroups, []string{"certificates.k8s.io"}) || len(r.NonResourceURLs) > 0 ||
			!slices.Equal(r.Resources, []string{"certificatesigningrequests"}) {
			t.Errorf("an agent has a right to %v of %v", r.Resources, r.APIGroups)
		}
		for _, verb := range r.Verbs {
			if !slices.Contains([]string{"create", "get", "watch"}, verb) {
				t.Errorf("an agent may %s certificate signing requests", verb)
			}
		}
	}
}

// rulesOf are the rules of all roles that an account is bound to.
func rulesOf(all []runtime.Object, account string) (rules []rbacv1.PolicyRule) {
	bound := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return s.Name == account })
	}
	roles := map[string][]rbacv1.PolicyRule{}
	for _, o := range all {
		switch r := o.(type) {
		case *rbacv1.ClusterRole:
			roles["ClusterRole/"+r.Name] = r.Rules
		case *rbacv1.Role:
			roles["Role/"+r.Name] = r.Rules
		}
	}
	for _, o := range all {
		switch b := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			if bound(b.Subjects) {
				rules = append(rules, roles[b.RoleRef.Kind+"/"+b.RoleRef.Name]...)
			}
		case *rbacv1.RoleBinding:
			if bound(b.Subjects) {
				rules = append(rules, roles[b.RoleRef.Kind+"/"+b.RoleRef.Name]...)
			}
		}
	}
	return rules
}

// DA-07: the one Secret is read by the API alone, no other is by anybody, and no rule has a wildcard.
func TestWhoReadsSecrets(t *testing.T) {
	all := typed(t, defaults(t))
	seen := 0
	for _, o := range all {
		var rules []rbacv1.PolicyRule
		name, inNamespace := "", false
		switch r := o.(type) {
		case *rbacv1.ClusterRole:
			rules, name = r.Rules, r.Name
		case *rbacv1.Role:
			rules, name, inNamespace = r.Rules, r.Name, true
		}
		for _, r := range rules {
			if words := slices.Concat(r.APIGroups, r.Resources, r.Verbs, r.ResourceNames); slices.Contains(words, "*") {
				t.Errorf("role %s has a wildcard: %v", name, r)
			}
			if !slices.Contains(r.Resources, "secrets") {
				continue
			}
			seen++
			if !inNamespace || name != "wherry-debug-api" || !slices.Equal(r.ResourceNames, []string{"wherry-debug-ca"}) ||
				!slices.Equal(r.Verbs, []string{"get", "update"}) {
				t.Errorf("role %s: %v", name, r)
			}
		}
	}
	if seen != 1 {
		t.Errorf("%d rules about secrets", seen)
	}
	subjects := one(t, all, func(b *rbacv1.RoleBinding) bool { return b.Namespace == "wherry-debug" }).Subjects
	if len(subjects) != 1 || subjects[0].Name != "wherry-debug-api" || subjects[0].Namespace != "wherry-debug" {
		t.Errorf("the role is bound to %v", subjects)
	}
}

// Applying again takes nothing away from what the API has filled in.
func TestWhatTheAPIFillsIsLeftOut(t *testing.T) {
	for _, o := range objects(t, defaults(t)) {
		for _, field := range [][]string{{"data"}, {"stringData"}, {"spec", "caBundle"}, {"spec", "insecureSkipTLSVerify"}} {
			if _, is, _ := unstructured.NestedFieldNoCopy(o.Object, field...); is {
				t.Errorf("%s %s has %v", o.GetKind(), o.GetName(), field)
			}
		}
	}
}

// DA-04: roles for users give what they say, each more than the one before, and aggregate to nothing unless asked to;
// the one that leads to the node never does, and none ever does to view.
func TestRolesOfUsers(t *testing.T) {
	role := func(v Values, name string) *rbacv1.ClusterRole {
		return one(t, typed(t, v), func(r *rbacv1.ClusterRole) bool { return r.Name == name })
	}
	may := func(r *rbacv1.ClusterRole, verb, resource, name string) bool {
		return slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Equal(rule.APIGroups, []string{wire.Group}) && slices.Contains(rule.Verbs, verb) &&
				slices.Contains(rule.Resources, resource) &&
				(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, name))
		})
	}
	look, debug, privileged := "wherry-look", "wherry-debug", "wherry-privileged"
	for _, c := range []struct{ verb, resource, name, from string }{
		{"get", "pods/files", "", look}, {"get", "pods/evidence", "", look}, {"get", "pods/sessions", "", look},
		{"get", "pods/shell", "", debug}, {"create", "pods/shell", "", debug}, {"create", "pods/exec", "", debug},
		{"create", "pods/files", "", debug}, {"delete", "pods/sessions", "", debug},
		{"use", "profiles", "restricted", debug}, {"use", "profiles", "baseline", debug}, {"use", "profiles", "general", debug},
		{"use", "profiles", "netadmin", privileged}, {"use", "profiles", "sysadmin", privileged},
		{"use", "profiles", "legacy", privileged}, {"use", "profiles", wire.ProfileHost, privileged},
	} {
		has := false
		for _, name := range []string{look, debug, privileged} {
			has = has || name == c.from
			if got := may(role(defaults(t), name), c.verb, c.resource, c.name); got != has {
				t.Errorf("%s: %s %s %s: %v", name, c.verb, c.resource, c.name, got)
			}
		}
	}
	for _, name := range []string{look, debug, privileged} {
		for key := range role(defaults(t), name).Labels {
			if strings.HasPrefix(key, "rbac.") {
				t.Errorf("%s aggregates by default: %s", name, key)
			}
		}
		labels := role(full(t), name).Labels
		if got := labels["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"; got != (name != privileged) {
			t.Errorf("%s, when asked to aggregate: %v", name, labels)
		}
		if _, is := labels["rbac.authorization.k8s.io/aggregate-to-view"]; is {
			t.Errorf("%s aggregates to view", name)
		}
	}
}

// What is chosen arrives where it has an effect.
func TestValuesArrive(t *testing.T) {
	all := typed(t, full(t))
	agents := one[*appsv1.DaemonSet](t, all, nil).Spec.Template.Spec
	api := one[*appsv1.Deployment](t, all, nil)
	for _, pod := range []corev1.PodSpec{agents, api.Spec.Template.Spec} {
		if c := pod.Containers[0]; c.Image != full(t).Image || c.ImagePullPolicy != corev1.PullAlways ||
			pod.PriorityClassName != "system-node-critical" || len(pod.ImagePullSecrets) != 2 {
			t.Errorf("%+v", pod)
		}
	}
	if len(agents.NodeSelector) != 1 || agents.NodeSelector["pool"] != "1" || len(agents.Tolerations) != 0 {
		t.Errorf("nodes of agents: %v, %v", agents.NodeSelector, agents.Tolerations)
	}
	if c := agents.Containers[0]; !slices.Contains(c.Args, "--cri-socket=/run/crio/crio.sock") ||
		c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError || len(c.Resources.Limits) != 0 {
		t.Errorf("agent: %v, %v", c.Args, c.Resources)
	}
	args := api.Spec.Template.Spec.Containers[0].Args
	if *api.Spec.Replicas != 3 || !slices.Contains(args, "--max-ttl=30m") || !slices.Contains(args, "--max-memory=512Mi") {
		t.Errorf("API: %d, %v", *api.Spec.Replicas, args)
	}
	service := one[*registration.APIService](t, all, nil).Spec.Service
	if service.Namespace != "elsewhere" {
		t.Errorf("the API is registered in %s", service.Namespace)
	}
}

// Bad values are refused whole, and all of them are named.
func TestBadValues(t *testing.T) {
	v := defaults(t)
	v.Namespace, v.Image, v.ImagePullPolicy = "A\nb", "-", "Often"
	v.ImagePullSecrets, v.PriorityClass, v.Agent.CRISocket = []string{"x: y"}, "$", "crio.sock"
	v.Agent.NodeSelector, v.API.Replicas = map[string]string{"a b": "c"}, 0
	v.Limits = Limits{MaxTTL: "long", MaxMemory: "1"}
	text, err := Render(v, "v1")
	if err == nil || text != nil {
		t.Fatal("they are taken")
	}
	for _, want := range []string{"namespace", "image \"-\"", "imagePullPolicy", "imagePullSecrets", "priorityClass",
		"agent.criSocket", "agent.nodeSelector", "api.replicas", "limits.maxTTL", "limits.maxMemory"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named: %v", want, err)
		}
	}
	for _, text := range []string{"nope: 1", "agent: {nope: 1}", "- a", "api: {replicas: two}", "image: a\nimage: b", "\t"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// Limits with which the API does not start are refused before anything is installed.
func TestLimits(t *testing.T) {
	for l, taken := range map[Limits]bool{
		{"168h", "16Mi"}: true, {"1s", "2Gi"}: true, {"168h0m1s", "2Gi"}: false, {"200h", "2Gi"}: false, {"999ms", "2Gi"}: false,
		{"-1h", "2Gi"}: false, {"", "2Gi"}: false, {"8h", "15Mi"}: false, {"8h", "-1Gi"}: false, {"8h", ""}: false,
	} {
		if errs := l.check(); (len(errs) == 0) != taken {
			t.Errorf("%+v: %v", l, errs)
		}
	}
}

// FuzzParse: values from anybody are refused, or what is made of them is objects, as many as always.
func FuzzParse(f *testing.F) {
	f.Add([]byte("agent: {criSocket: /x}"))
	f.Add([]byte("imagePullSecrets: [a]\nimage: x/y:1"))
	f.Add([]byte("agent: {nodeSelector: {a: '\"x'}, tolerations: [{key: \"b\\n\"}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := Parse(text)
		if err != nil || v.Check() != nil {
			return
		}
		all, err := Objects(v, "v1")
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := 20
		if v.CreateNamespace {
			want++
		}
		if len(all) != want {
			t.Errorf("%q makes %d objects", text, len(all))
		}
	})
}

func TestVersions(t *testing.T) {
	for _, c := range []struct{ version, tag, chart string }{
		{"v1.2.3", "v1.2.3", "1.2.3"},
		{"v1.2.3-4-gabcdef0-dirty", "v1.2.3-4-gabcdef0-dirty", "1.2.3-4-gabcdef0-dirty"},
		{"v1.2.3+x", "v1.2.3-x", "1.2.3+x"},
		{"devel", "devel", "0.0.0-dev.devel"},
		{"ca9f0775-dirty", "ca9f0775-dirty", "0.0.0-dev.ca9f0775-dirty"},
		{"", "devel", "0.0.0-dev.devel"},
		{"..a b_", "a-b", "0.0.0-dev.a-b"},
	} {
		if got := Tag(c.version); got != c.tag {
			t.Errorf("tag of %q: %q", c.version, got)
		}
		if got := chartVersion(c.version); got != c.chart {
			t.Errorf("chart's version of %q: %q", c.version, got)
		}
	}
}

func TestSameEveryTime(t *testing.T) {
	a, err := Render(full(t), "v1")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Render(full(t), "v1")
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("two manifests of the same values differ: %v", err)
	}
}
