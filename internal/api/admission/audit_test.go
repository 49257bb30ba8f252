// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	podsecurity "k8s.io/pod-security-admission/admission"
	podsecuritylabels "k8s.io/pod-security-admission/api"
	podsecuritymetrics "k8s.io/pod-security-admission/metrics"
	podsecuritypolicy "k8s.io/pod-security-admission/policy"

	"github.com/wherryproject/wherry/internal/api/admission/configfile"
	"github.com/wherryproject/wherry/internal/api/admission/images"
	"github.com/wherryproject/wherry/internal/api/imagepolicy"
	"github.com/wherryproject/wherry/internal/api/schemes"
)

// fixedNamespace is all that Pod Security reads.
type fixedNamespace struct{ labels map[string]string }

func (n fixedNamespace) GetNamespace(context.Context, string) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: n.labels}}, nil
}

func (fixedNamespace) ListPods(context.Context, string) ([]*corev1.Pod, error) { return nil, nil }

// TestAdmissionAudits proves EC-21 EC-22: what policies let pass in audit mode is in the audit log, of debug containers
// too.
func TestAdmissionAudits(t *testing.T) {
	config, err := configfile.Config(nil).PodSecurity()
	if err != nil {
		t.Fatal(err)
	}
	checks, err := podsecuritypolicy.NewEvaluator(podsecuritypolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ns := fixedNamespace{map[string]string{podsecuritylabels.AuditLevelLabel: "baseline"}}
	judge := &podsecurity.Admission{Configuration: config, Evaluator: checks,
		Metrics: podsecuritymetrics.NewPrometheusRecorder(podsecuritylabels.LatestVersion()), NamespaceGetter: ns,
		PodLister: ns}
	if err := judge.CompleteConfiguration(); err != nil {
		t.Fatal(err)
	}
	judgeImages := &images.Plugin{Namespace: ns.GetNamespace, Fixed: []imagepolicy.ImagePolicy{
		{ObjectMeta: metav1.ObjectMeta{Name: "trial"}, Spec: imagepolicy.ImagePolicySpec{Deny: []string{"tools"},
			Action: imagepolicy.Audit}}}}
	types, err := schemes.New()
	if err != nil {
		t.Fatal(err)
	}
	chain := admission.WithAudit(admission.NewChainHandler(
		podSecurity{judge: judge, types: types}, judgeImages)).(admission.ValidationInterface)

	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app"}}}}
	now := old.DeepCopy()
	now.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "tools:1",
		SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}}
	v1 := corev1.SchemeGroupVersion
	ctx := audit.WithAuditContext(t.Context())
	if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: auditinternal.LevelMetadata},
		nil); err != nil {
		t.Fatal(err)
	}
	a := admission.NewAttributesRecord(now, old, v1.WithKind("Pod"), "ns", "p", v1.WithResource("pods"),
		"ephemeralcontainers", admission.Update, nil, false, nil)
	if err := chain.Validate(ctx, a, nil); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"pod-security.kubernetes.io/audit-violations": `would violate PodSecurity "baseline:latest": privileged (container "debug"`,
		"pod-security.kubernetes.io/enforce-policy":   "privileged:latest",
		"policy.wherry.dev/audit-violations":          `image policy "trial": ephemeral container "debug" of pod "p": image "tools:1" is denied by tools`,
	} {
		if got, _ := audit.AuditContextFrom(ctx).GetEventAnnotation(key); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}
