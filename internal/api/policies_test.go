// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// enforce installs a validating policy for one namespace, and returns when it is in effect. A nil binding denies.
func enforce(t *testing.T, c kubernetes.Interface, ns string, p *admissionv1.ValidatingAdmissionPolicy,
	b *admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	p.Name, p.Spec.MatchConstraints.NamespaceSelector = ns, only(ns)
	if b == nil {
		b = bindValidating("", "")
	}
	b.Name, b.Spec.PolicyName = ns, ns
	marker := validatingPolicy(ns+"-marker", rule("serviceaccounts", admissionv1.Create), "false")
	marker.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{policyMarker: ns}}
	marker.Spec.Validations[0].Message = "marked"
	policies, bindings := c.AdmissionregistrationV1().ValidatingAdmissionPolicies(),
		c.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	for _, one := range []struct {
		*admissionv1.ValidatingAdmissionPolicy
		*admissionv1.ValidatingAdmissionPolicyBinding
	}{{p, b}, {marker, bindValidating(marker.Name, marker.Name)}} {
		if _, err := policies.Create(t.Context(), one.ValidatingAdmissionPolicy, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := bindings.Create(t.Context(), one.ValidatingAdmissionPolicyBinding,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		name := one.ValidatingAdmissionPolicy.Name
		t.Cleanup(func() {
			if err := bindings.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			if err := policies.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	inEffect(t, c, ns, policyMarker)
}

// EC-21 DC-03 IX-07: a policy about images holds for every way by which an image gets into a pod.
func TestPolicyAboutImages(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	p := n.pod(t, ns, pod("p"))
	policy := validatingPolicy("", rule("pods", admissionv1.Create, admissionv1.Update),
		"!variables.images.exists(i, i.startsWith('evil.example/'))")
	policy.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"pods", "pods/ephemeralcontainers"}
	policy.Spec.Variables = []admissionv1.Variable{
		{Name: "inits", Expression: "has(object.spec.initContainers) ? object.spec.initContainers : []"},
		{Name: "debug", Expression: "has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : []"},
		{Name: "images",
			Expression: "(object.spec.containers.map(c, c.image)) + variables.inits.map(c, c.image) + variables.debug.map(c, c.image)"},
	}
	policy.Spec.Validations[0].MessageExpression = "'no evil images: ' + string(size(variables.images)) + ' were looked at'"
	policy.Spec.Validations[0].Reason = ptr.To(metav1.StatusReasonForbidden)
	enforce(t, c, ns, policy, nil)

	create := func(change func(*corev1.Pod)) error {
		made := pod("made")
		change(made)
		_, err := c.CoreV1().Pods(ns).Create(t.Context(), made,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	debug := func(query string) error {
		_, err := execInto(t, adminConfig(t), "websocket", ns, p.Name, query)
		return err
	}
	for _, tc := range []struct {
		what string
		with func(image string) error
	}{
		{"create", func(i string) error { return create(func(p *corev1.Pod) { p.Spec.Containers[0].Image = i }) }},
		{"create, init", func(i string) error {
			return create(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: i}} })
		}},
		{"server-side apply", func(i string) error {
			_, err := c.CoreV1().Pods(ns).Patch(t.Context(), "applied", types.ApplyPatchType,
				[]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"applied"},"spec":{"containers":[{"name":"a","image":"`+i+`"}]}}`),
				metav1.PatchOptions{FieldManager: "test", DryRun: []string{metav1.DryRunAll}})
			return err
		}},
		{"update", func(i string) error {
			_, err := c.CoreV1().Pods(ns).Patch(t.Context(), p.Name, types.StrategicMergePatchType,
				[]byte(`{"spec":{"containers":[{"name":"main","image":"`+i+`"}]}}`), metav1.PatchOptions{})
			return err
		}},
		{"ephemeralcontainers", func(i string) error {
			_, err := c.CoreV1().Pods(ns).Patch(t.Context(), p.Name, types.StrategicMergePatchType,
				[]byte(`{"spec":{"ephemeralContainers":[{"name":"e","image":"`+i+`"}]}}`), metav1.PatchOptions{},
				"ephemeralcontainers")
			return err
		}},
		{"exec++", func(i string) error {
			return debug("stdout=true&ephemeralContainerName=x&ephemeralContainerImage=" + i)
		}},
		{"image exec", func(i string) error { return debug("stdout=true&command=x&image=" + i) }},
	} {
		t.Run(tc.what, func(t *testing.T) {
			if err := tc.with("evil.example/a:1"); err == nil || !strings.Contains(err.Error(), "no evil images") {
				t.Errorf("an evil image: %v", err)
			}
			if err := tc.with("tools:1"); err != nil {
				t.Errorf("a good image: %v", err)
			}
		})
	}
}

// EC-21: a policy that cannot be evaluated refuses, unless its failurePolicy is Ignore; a param that is not there does
// what the binding says.
func TestPoliciesFailClosed(t *testing.T) {
	c := client(t)
	params := &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	ref := func(name string, missing admissionv1.ParameterNotFoundActionType) *admissionv1.ParamRef {
		return &admissionv1.ParamRef{Name: name, ParameterNotFoundAction: &missing}
	}
	for _, tc := range []struct {
		what       string
		expression string
		kind       *admissionv1.ParamKind
		ref        *admissionv1.ParamRef
		condition  string
		failure    admissionv1.FailurePolicyType
		want       string // part of the refusal, empty: none
	}{
		{"false", "false", nil, nil, "", "", "failed expression: false"},
		{"false and Ignore", "false", nil, nil, "", admissionv1.Ignore, "failed expression: false"},
		{"true", "true", nil, nil, "", "", ""},
		{"runtime error", "object.spec.not.there == 'x'", nil, nil, "", "", "no such key: spec"},
		{"runtime error and Ignore", "object.spec.not.there == 'x'", nil, nil, "", admissionv1.Ignore, ""},
		{"condition error", "true", nil, nil, "object.spec.not.there == 'x'", "", "no such key: spec"},
		{"condition error and Ignore", "false", nil, nil, "object.spec.not.there == 'x'", admissionv1.Ignore, ""},
		{"condition that excludes", "false", nil, nil, "object.metadata.name == 'other'", "", ""},
		{"param missing", "true", params, ref("nobody", admissionv1.DenyAction), "", "", "no params found"},
		{"param missing and allowed", "false", params, ref("nobody", admissionv1.AllowAction), "", "", ""},
		{"param missing and Ignore", "false", params, ref("nobody", admissionv1.DenyAction), "", admissionv1.Ignore,
			""},
		{"param says no", "params.data.allowed == 'yes'", params, ref("no", admissionv1.DenyAction), "", "",
			"failed expression"},
		{"param says yes", "params.data.allowed == 'yes'", params, ref("yes", admissionv1.DenyAction), "", "", ""},
		{"unknown kind", "true", &admissionv1.ParamKind{APIVersion: "none.example.com/v1", Kind: "None"},
			ref("a", admissionv1.AllowAction), "", "", "failed to find resource"},
		{"unknown kind and Ignore", "false", &admissionv1.ParamKind{APIVersion: "none.example.com/v1", Kind: "None"},
			ref("a", admissionv1.AllowAction), "", admissionv1.Ignore, ""},
	} {
		t.Run(tc.what, func(t *testing.T) {
			t.Parallel() // a policy takes effect when the library looks again, once a second
			ns := namespace(t, c)
			for _, name := range []string{"yes", "no"} {
				cm := configMap(name)
				cm.Data = map[string]string{"allowed": name}
				if _, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			policy, binding := validatingPolicy("", rule("configmaps", admissionv1.Create), tc.expression),
				bindValidating("", "")
			policy.Spec.ParamKind, binding.Spec.ParamRef = tc.kind, tc.ref
			if tc.condition != "" {
				policy.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "c", Expression: tc.condition}}
			}
			if tc.failure != "" {
				policy.Spec.FailurePolicy = &tc.failure
			}
			enforce(t, c, ns, policy, binding)
			_, err := try(t, c, ns)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (!isRefusal(err) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want a refusal with %q", err, tc.want)
			}
		})
	}
}

// EC-21: a policy may ask who asks, warn instead of deny, and take custom words.
func TestPolicyWarnsAndAsksForRights(t *testing.T) {
	config, warned := adminConfig(t), &hookWarnings{}
	config.WarningHandler = warned
	c := clientOf(t, config)
	ns := namespace(t, c)
	policy := validatingPolicy("", rule("configmaps", admissionv1.Create),
		"!authorizer.group('').resource('secrets').namespace(request.namespace).check('delete').allowed()")
	policy.Spec.Validations[0].Message = "you may do too much"
	binding := bindValidating("", "")
	binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn, admissionv1.Audit}
	enforce(t, c, ns, policy, binding)
	warned.texts()
	if _, err := try(t, c, ns); err != nil {
		t.Fatal(err)
	}
	if got := warned.texts(); len(got) != 1 || !strings.Contains(got[0], "you may do too much") ||
		!strings.Contains(got[0], "Validation failed for ValidatingAdmissionPolicy '"+ns+"'") {
		t.Errorf("warnings %q", got)
	}
}

// EC-21: a policy's expressions are checked against the kinds that it is about, and its status says what does not fit.
func TestPolicyTypeChecking(t *testing.T) {
	c := client(t)
	name := namespace(t, c)
	policies := c.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	about := rule("pods", admissionv1.Create)
	about.APIGroups, about.APIVersions = []string{""}, []string{"v1"}
	p, err := policies.Create(t.Context(), validatingPolicy(name, about, "object.spec.replicas > 1"),
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := policies.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	if p.Generation != 1 {
		t.Errorf("generation %d", p.Generation)
	}
	p = checkedPolicy(t, c, name, 1)
	if w := p.Status.TypeChecking.ExpressionWarnings; len(w) != 1 ||
		w[0].FieldRef != "spec.validations[0].expression" ||
		!strings.Contains(w[0].Warning, "undefined field 'replicas'") {
		t.Errorf("warnings %+v", w)
	}
	p.Spec.Validations[0].Expression = "size(object.spec.containers) > 1"
	if p, err = policies.Update(t.Context(), p, metav1.UpdateOptions{}); err != nil || p.Generation != 2 {
		t.Fatalf("generation %d, %v", p.Generation, err)
	}
	if w := checkedPolicy(t, c, name, 2).Status.TypeChecking.ExpressionWarnings; len(w) != 0 {
		t.Errorf("warnings %+v", w)
	}
	p.Spec.Validations[0].Expression = "object.spec.containers >"
	if _, err := policies.Update(t.Context(), p, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) &&
		!apierrors.IsConflict(err) {
		t.Errorf("an expression that does not compile: %v", err)
	}
}

// checkedPolicy waits until a generation of a policy has been checked.
func checkedPolicy(t *testing.T, c kubernetes.Interface, name string,
	generation int64) *admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := c.AdmissionregistrationV1().ValidatingAdmissionPolicies().Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if p, ok := e.Object.(*admissionv1.ValidatingAdmissionPolicy); ok &&
			p.Status.ObservedGeneration == generation && p.Status.TypeChecking != nil {
			return p
		}
	}
	t.Fatalf("generation %d was not checked", generation)
	return nil
}
