// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// EC-21: whoever has a policy read its parameters you need permission to read them.
func TestPolicyParamsNeedRights(t *testing.T) {
	admin := client(t)
	ns := namespace(t, admin)
	grant := func(rules ...rbacv1.PolicyRule) string {
		name := "writer-" + ns + "-" + string(rune('a'+len(rules)))
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: append(rules, rbacv1.PolicyRule{Verbs: []string{"*"},
				APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"*"}})}
		if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}}
		if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = admin.RbacV1().ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
			_ = admin.RbacV1().ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
		return name
	}
	poor := clientOf(t, asUser(t, grant())).AdmissionregistrationV1()
	rich := clientOf(t, asUser(t, grant(rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""},
		Resources: []string{"secrets"}}))).AdmissionregistrationV1()
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	policy := validatingPolicy(ns, sampleRule(), "true")
	policy.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "Secret"}
	unknown := policy.DeepCopy()
	unknown.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "none.example.com/v1", Kind: "Thing"}
	changing := mutatingPolicy(ns, sampleRule(), addLabel("a", "b"))
	changing.Spec.ParamKind = policy.Spec.ParamKind
	ref := &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}, Namespace: ns,
		ParameterNotFoundAction: ptr.To(admissionv1.AllowAction)}
	bound, early, without := bindValidating(ns, ns), bindMutating(ns, "not-there"), bindValidating(ns, "not-there")
	bound.Spec.ParamRef, early.Spec.ParamRef = ref, ref
	if _, err := admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(context.Background(), ns,
			metav1.DeleteOptions{})
	}()
	another := policy.DeepCopy()
	another.Name = ns + "-2"
	for what, tc := range map[string]struct {
		do      func() error
		mayPass func() error
	}{
		"policy": {
			func() error {
				_, err := poor.ValidatingAdmissionPolicies().Create(t.Context(), another, dry)
				return err
			},
			func() error {
				_, err := rich.ValidatingAdmissionPolicies().Create(t.Context(), another, dry)
				return err
			}},
		"mutating policy": {
			func() error {
				_, err := poor.MutatingAdmissionPolicies().Create(t.Context(), changing, dry)
				return err
			},
			func() error {
				_, err := rich.MutatingAdmissionPolicies().Create(t.Context(), changing, dry)
				return err
			}},
		"kind that is not served": {
			func() error {
				u := unknown.DeepCopy()
				u.Name += "-3"
				_, err := rich.ValidatingAdmissionPolicies().Create(t.Context(), u, dry)
				return err
			},
			func() error {
				u := unknown.DeepCopy()
				u.Name += "-3"
				_, err := admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), u, dry)
				return err
			}},
		"binding": {
			func() error {
				_, err := poor.ValidatingAdmissionPolicyBindings().Create(t.Context(), bound, dry)
				return err
			},
			func() error {
				_, err := rich.ValidatingAdmissionPolicyBindings().Create(t.Context(), bound, dry)
				return err
			}},
		"binding before its policy": {
			func() error {
				_, err := rich.MutatingAdmissionPolicyBindings().Create(t.Context(), early, dry)
				return err
			},
			func() error {
				_, err := poor.ValidatingAdmissionPolicyBindings().Create(t.Context(), without, dry)
				return err
			}},
		"change of a policy": {
			func() error {
				_, err := poor.ValidatingAdmissionPolicies().Patch(t.Context(), ns, types.MergePatchType,
					[]byte(`{"spec":{"paramKind":{"kind":"ConfigMap"}}}`), metav1.PatchOptions{})
				return err
			},
			func() error { // what somebody else has let in may stay
				_, err := poor.ValidatingAdmissionPolicies().Patch(t.Context(), ns, types.MergePatchType,
					[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
				return err
			}},
	} {
		if err := tc.do(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
			"you need permission to read them") {
			t.Errorf("%s, without the right: %v", what, err)
		}
		if err := tc.mayPass(); err != nil {
			t.Errorf("%s, with it: %v", what, err)
		}
	}
}

// EC-21 EC-22: what policies and webhooks say for the audit is in the event of the request, also of a debug session's.
func TestPoliciesAndWebhooksAnnotateAudit(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	policy := validatingPolicy("", rule("pods/ephemeralcontainers", "UPDATE"), "true")
	policy.Spec.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "images",
		ValueExpression: "string(size(object.spec.ephemeralContainers)) + ' debug containers'"}}
	enforce(t, c, ns, policy, nil)
	w := newWebhook(t, func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse {
		return &reviewv1.AdmissionResponse{Allowed: true, AuditAnnotations: map[string]string{"looked": "closely"}}
	})
	validate(t, c, ns, hook("audit.example.com", w.client(), rule("pods/ephemeralcontainers", "UPDATE")))
	if _, err := execInto(t, adminConfig(t), "websocket", ns, "p",
		strings.Replace(session, "tools", "shell", 1)); err != nil {
		t.Fatal(err)
	}
	e, line := onRecord(t, auditLog(), ns, func(e *auditv1.Event) bool {
		return e.Stage == auditv1.StageResponseComplete && e.ObjectRef.Subresource == "exec"
	})
	if e.Annotations[ns+"/images"] != "1 debug containers" || e.Annotations["audit.example.com/looked"] != "closely" {
		t.Errorf("on record: %s", line)
	}
}

// SC-22 EC-21: the manifests of examples/admission do what the guide says.
func TestAdmissionExamples(t *testing.T) {
	c, dyn := client(t), dynamicClient(t)
	ns := namespace(t, c)
	if _, err := c.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"images":"checked","sidecar":"yes"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"known-registries.yaml", "sidecar.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../examples/admission", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(text), "\n---\n") {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
				t.Fatal(err)
			}
			resource := strings.ToLower(u.GetKind()) + "s"
			if strings.HasSuffix(u.GetKind(), "Policy") {
				resource = strings.TrimSuffix(strings.ToLower(u.GetKind()), "y") + "ies"
			}
			ri := dyn.Resource(admissionGV.WithResource(resource))
			if _, err := ri.Create(t.Context(), u, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := ri.Delete(context.Background(), u.GetName(), metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	// whose marker shows that those before it are in effect
	change(t, c, ns, mutatingPolicy("", sampleRule(), addLabel("a", "b")))
	enforce(t, c, ns, validatingPolicy("", sampleRule(), "true"), nil)
	p := pod("p")
	p.Spec.Containers[0].Image = "docker.io/library/nginx"
	if _, err := c.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{}); err == nil ||
		!strings.Contains(err.Error(), "images come from registry.example.com") {
		t.Errorf("an image from elsewhere: %v", err)
	}
	p.Spec.Containers[0].Image = "registry.example.com/app:1"
	for name, inits := range map[string][]corev1.Container{"plain": nil,
		"with-init": {{Name: "init", Image: "wherry.dev/toolbox"}}} {
		p.Name, p.Spec.InitContainers = name, inits
		made, err := c.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := made.Spec.InitContainers; len(got) != len(inits)+1 || got[0].Name != "proxy" {
			t.Errorf("%s: init containers %v", name, got)
		}
	}
}
