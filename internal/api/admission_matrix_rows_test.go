// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wherryproject/wherry/internal/api/imagepolicy"
)

// nothing says why a plug-in has nothing to deny on some ways.
func nothing(why string, ways ...string) map[string]way {
	m := map[string]way{}
	for _, w := range ways {
		m[w] = way{why: why}
	}
	return m
}

func both(a, b map[string]way) map[string]way {
	for k, v := range b {
		a[k] = v
	}
	return a
}

// onImages is a plug-in that judges images: evil:1 is refused on every way.
func onImages(words, allow, becomes string) map[string]way {
	m := map[string]way{}
	for _, w := range allWays {
		m[w] = way{deny: "evil:1", words: words, allow: allow, becomes: becomes}
	}
	return m
}

func gates() []gate {
	later := []string{byUpdate, byEphemeral, byDebug, byImageExec}
	return []gate{
		{plugin: "NamespaceLifecycle", ways: both(nothing("what is in a namespace may change, also while it ends",
			later...), map[string]way{
			byCreate: {words: "not found", denyPod: func(p *corev1.Pod) { p.Namespace = "nowhere" }},
		})},
		{plugin: "ServiceAccount", ways: both(nothing("a pod's account does not change", later...), map[string]way{
			byCreate: {words: `serviceaccounts "nobody" not found`,
				denyPod: func(p *corev1.Pod) { p.Spec.ServiceAccountName = "nobody" }},
		})},
		mountableSecretsGate(),
		{plugin: "DefaultTolerationSeconds", ways: nothing("it adds and refuses nothing", allWays...)},
		{plugin: "NodeRestriction",
			ways: nothing("it is about nodes' agents, which TestNodeRestriction tries; these clients are none",
				allWays...)},
		{plugin: "LimitRanger", arrange: func(t *testing.T, w world) {
			limit(t, w.c, w.ns, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: cpus("1"),
				Default: cpus("1")})
		}, ways: both(nothing("resources of a stored pod do not change, and ephemeral containers have none", later...),
			map[string]way{
				byCreate: {words: "maximum cpu usage per Container is 1, but limit is 2", denyPod: func(p *corev1.Pod) {
					p.Spec.Containers[0].Resources.Limits = cpus("2")
				}},
			})},
		priorityGate(),
		runtimeClassGate(),
		baselineGate(), restrictedGate(), imagePolicyGate(),
		mutatingWebhookGate(), validatingWebhookGate(), mutatingPolicyGate(), validatingPolicyGate(),
		{plugin: "CertificateAdmission", ways: nothing("it is about requests for certificates", allWays...)},
		{plugin: "ResourceQuota", arrange: func(t *testing.T, w world) {
			newQuota(t, w.c, w.ns, hard("pods", "9", "requests.cpu", "1"))
		}, ways: both(nothing("a pod that is there takes no more by it: ephemeral containers count nothing (EC-12)",
			later...), map[string]way{
			byCreate: {words: "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1",
				denyPod:  func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = cpus("2") },
				allowPod: func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = cpus("1") }},
		})},
	}
}

func mountableSecretsGate() gate {
	from := func(name string) []corev1.EnvFromSource {
		return []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
	}
	const words = `pods of service account default may not use secret "foreign"`
	return gate{plugin: "ServiceAccount mountable secrets", arrange: func(t *testing.T, w world) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default",
			Annotations: map[string]string{"kubernetes.io/enforce-mountable-secrets": "true"}},
			Secrets: []corev1.ObjectReference{{Name: "own"}}}
		if _, err := w.c.CoreV1().ServiceAccounts(w.ns).Update(t.Context(), account,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}, ways: both(nothing("no secret comes into a pod by it", byUpdate, byDebug, byImageExec), map[string]way{
		byCreate: {words: words, denyPod: func(p *corev1.Pod) { p.Spec.Containers[0].EnvFrom = from("foreign") },
			allowPod: func(p *corev1.Pod) { p.Spec.Containers[0].EnvFrom = from("own") }},
		byEphemeral: {words: words, denyDebug: func(e *corev1.EphemeralContainer) { e.EnvFrom = from("foreign") },
			allowDebug: func(e *corev1.EphemeralContainer) { e.EnvFrom = from("own") }},
	})}
}

func priorityGate() gate {
	return gate{plugin: "Priority", arrange: func(t *testing.T, w world) {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Value: 7}
		if _, err := w.c.SchedulingV1().PriorityClasses().Create(t.Context(), class,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.cleanUp(t, func(ctx context.Context) error {
			return w.c.SchedulingV1().PriorityClasses().Delete(ctx, w.ns, metav1.DeleteOptions{})
		})
	}, ways: both(nothing("a pod's priority does not change", byUpdate, byEphemeral, byDebug, byImageExec),
		map[string]way{
			byCreate: {words: "no PriorityClass with name nobodys was found",
				denyPod:  func(p *corev1.Pod) { p.Spec.PriorityClassName = "nobodys" },
				allowPod: func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }},
		})}
}

func runtimeClassGate() gate {
	const class = "matrix-boxed"
	return gate{plugin: "RuntimeClass", arrange: func(t *testing.T, w world) {
		boxed := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Handler: "runsc",
			Overhead: &nodev1.Overhead{PodFixed: cpus("1")}}
		if _, err := w.c.NodeV1().RuntimeClasses().Create(t.Context(), boxed, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.cleanUp(t, func(ctx context.Context) error {
			return w.c.NodeV1().RuntimeClasses().Delete(ctx, class, metav1.DeleteOptions{})
		})
	}, ways: both(nothing("a pod's runtime class and overhead do not change", byUpdate, byEphemeral, byDebug,
		byImageExec), map[string]way{
		byCreate: {words: `pod rejected: overhead differs from that of RuntimeClass "matrix-boxed"`,
			denyPod: func(p *corev1.Pod) {
				p.Spec.RuntimeClassName, p.Spec.Overhead = new(class), cpus("2")
			}, allowPod: func(p *corev1.Pod) { p.Spec.RuntimeClassName = new(class) }},
	})}
}

func baselineGate() gate {
	privileged := &corev1.SecurityContext{Privileged: new(true)}
	return gate{plugin: "PodSecurity baseline", arrange: func(t *testing.T, w world) {
		// these only bring images, so the pod itself must be what is wrong
		for _, way := range []string{byUpdate, byImageExec} {
			name := "bad-" + slug(way)
			if err := w.c.CoreV1().Pods(w.ns).Delete(t.Context(), name,
				metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
				t.Fatal(err)
			}
			p := pod(name)
			p.Spec.HostNetwork = true
			w.n.pod(t, w.ns, p)
		}
		w.label(t, map[string]string{"pod-security.kubernetes.io/enforce": "baseline"})
	}, ways: map[string]way{
		byCreate: {words: `violates PodSecurity "baseline:latest": privileged (container "main" must not set`,
			denyPod: func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext = privileged }},
		byUpdate: {words: `violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`},
		byEphemeral: {words: `violates PodSecurity "baseline:latest": privileged (container "debug" must not set`,
			denyDebug: func(e *corev1.EphemeralContainer) { e.SecurityContext = privileged }},
		byDebug: {words: `violates PodSecurity "baseline:latest": privileged (container "debug" must not set`,
			denyQuery: "&ephemeralContainerProfile=sysadmin", allowQuery: "&ephemeralContainerProfile=baseline"},
		byImageExec: {words: `violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`},
	}}
}

// restrictedGate: a pod that must run without root may be entered without root only, by image exec too.
func restrictedGate() gate {
	const words = `violates PodSecurity "restricted:latest"`
	all := map[string]way{}
	for _, w := range allWays {
		all[w] = way{words: words}
	}
	restricted := &corev1.SecurityContext{AllowPrivilegeEscalation: new(false),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	e := all[byEphemeral]
	e.allowDebug = func(e *corev1.EphemeralContainer) { e.SecurityContext = restricted }
	d := all[byDebug]
	d.allowQuery = "&ephemeralContainerProfile=restricted"
	all[byEphemeral], all[byDebug] = e, d
	return gate{plugin: "PodSecurity restricted", good: func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		p.Spec.Containers[0].SecurityContext = restricted.DeepCopy()
	}, arrange: func(t *testing.T, w world) {
		w.label(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	}, ways: all}
}

func imagePolicyGate() gate {
	ways := onImages(`image policy "`, "", "")
	update := ways[byUpdate]
	update.words = `container "main" of pod "bad-update": image "evil:1" is not allowed; allowed are tools:*`
	ways[byUpdate] = update
	exec := ways[byImageExec]
	exec.words = `ephemeral container "image-exec" of pod "bad-image": image "evil:1" is not allowed; allowed are tools:*`
	ways[byImageExec] = exec
	return gate{plugin: "ImagePolicy", arrange: func(t *testing.T, w world) {
		newImagePolicy(t, w.ns, imagepolicy.ImagePolicySpec{Namespaces: []string{w.ns}, Allow: []string{"tools:*"}})
	}, ways: ways}
}

// newImagePolicy makes a policy that lasts as long as the test.
func newImagePolicy(t *testing.T, name string, spec imagepolicy.ImagePolicySpec) {
	t.Helper()
	raw, err := json.Marshal(imagepolicy.ImagePolicy{TypeMeta: metav1.TypeMeta{APIVersion: "policy.wherry.dev/v1",
		Kind: "ImagePolicy"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		t.Fatal(err)
	}
	policies := dynamicClient(t).Resource(imagepolicy.GroupVersion().WithResource(imagepolicy.Resource))
	if _, err := policies.Create(t.Context(), u, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := policies.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// podRulesOfHooks are the requests by which images get into pods.
func podRulesOfHooks() []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{rule("pods", admissionv1.Create, admissionv1.Update),
		rule("pods/ephemeralcontainers", admissionv1.Update)}
}

// imagesIn are the JSON pointers of a pod's images.
func imagesIn(raw []byte) map[string]string {
	var p corev1.Pod
	if json.Unmarshal(raw, &p) != nil {
		return nil
	}
	at := map[string]string{}
	for i, c := range p.Spec.Containers {
		at[fmt.Sprintf("/spec/containers/%d/image", i)] = c.Image
	}
	for i, c := range p.Spec.EphemeralContainers {
		at[fmt.Sprintf("/spec/ephemeralContainers/%d/image", i)] = c.Image
	}
	return at
}

func mutatingWebhookGate() gate {
	return gate{plugin: "MutatingAdmissionWebhook", arrange: func(t *testing.T, w world) {
		server := newWebhook(t, func(r *reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse {
			var patch []string
			for at, image := range imagesIn(r.Object.Raw) {
				switch image {
				case "evil:1":
					return denied("evil is not welcome")
				case "rewrite:1":
					patch = append(patch, fmt.Sprintf(`{"op":"replace","path":%q,"value":"tools:9"}`, at))
				}
			}
			return patched("[" + strings.Join(patch, ",") + "]")
		})
		mutate(t, w.c, w.ns, hook("images.example.com", server.client(), podRulesOfHooks()...))
	}, ways: onImages("evil is not welcome", "rewrite:1", "tools:9")}
}

func validatingWebhookGate() gate {
	return gate{plugin: "ValidatingAdmissionWebhook", arrange: func(t *testing.T, w world) {
		server := newWebhook(t, func(r *reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse {
			for _, image := range imagesIn(r.Object.Raw) {
				if image == "evil:1" {
					return denied("evil is not welcome")
				}
			}
			return &reviewv1.AdmissionResponse{Allowed: true}
		})
		validate(t, w.c, w.ns, hook("images.example.com", server.client(), podRulesOfHooks()...))
	}, ways: onImages("evil is not welcome", "", "")}
}

func mutatingPolicyGate() gate {
	const debuggers = `(has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : [])`
	const last = `string(size(object.spec.ephemeralContainers) - 1)`
	expression := `object.spec.containers.exists(c, c.image == "evil:1") || ` + debuggers + `.exists(c, c.image == "evil:1") ?
		[JSONPatch{op: "replace", path: "/evil/is/not/welcome", value: "x"}] :
		(object.spec.containers[0].image == "rewrite:1" ? [JSONPatch{op: "replace", path: "/spec/containers/0/image", value: "tools:9"}] : []) +
		(` + debuggers + `.exists(c, c.image == "rewrite:1") ? [JSONPatch{op: "replace", path: "/spec/ephemeralContainers/" + ` + last + ` + "/image", value: "tools:9"}] : [])`
	return gate{plugin: "MutatingAdmissionPolicy", arrange: func(t *testing.T, w world) {
		policy := mutatingPolicy("", rule("pods", admissionv1.Create), jsonPatched(expression))
		policy.Spec.MatchConstraints = policyMatch("", podRulesOfHooks()...)
		change(t, w.c, w.ns, policy)
	}, ways: onImages("evil", "rewrite:1", "tools:9")}
}

func validatingPolicyGate() gate {
	return gate{plugin: "ValidatingAdmissionPolicy", arrange: func(t *testing.T, w world) {
		policy := validatingPolicy("", rule("pods", admissionv1.Create),
			`object.spec.containers.all(c, c.image != "evil:1") && `+
				`(!has(object.spec.ephemeralContainers) || object.spec.ephemeralContainers.all(c, c.image != "evil:1"))`)
		policy.Spec.MatchConstraints = policyMatch("", podRulesOfHooks()...)
		policy.Spec.Validations[0].Message = "evil is not welcome"
		enforce(t, w.c, w.ns, policy, nil)
	}, ways: onImages("evil is not welcome", "", "")}
}
