// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	compbasemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	podsecurity "k8s.io/pod-security-admission/admission"
	podsecurityapi "k8s.io/pod-security-admission/admission/api"
	podsecuritylabels "k8s.io/pod-security-admission/api"
	podsecuritymetrics "k8s.io/pod-security-admission/metrics"
	podsecuritypolicy "k8s.io/pod-security-admission/policy"
)

// podSecurity holds pods to the Pod Security Standard that their namespace's labels name, and namespaces to labels that mean
// something (EC-21). The judge is Kubernetes' own.
type podSecurity struct{ judge *podsecurity.Admission }

var _ admission.ValidationInterface = podSecurity{}

// newPodSecurity makes the plug-in. What its configuration lacks is an error for the user.
func newPodSecurity(st stores, config *podsecurityapi.PodSecurityConfiguration) (podSecurity, error) {
	checks, err := podsecuritypolicy.NewEvaluator(podsecuritypolicy.DefaultChecks(), nil)
	if err != nil {
		return podSecurity{}, err
	}
	recorder := podsecuritymetrics.NewPrometheusRecorder(podsecuritylabels.GetAPIVersion())
	recorder.MustRegister(func(all ...compbasemetrics.Registerable) {
		for _, one := range all {
			_ = legacyregistry.Register(one) // another server of this process has it already, and counts for both
		}
	})
	judge := &podsecurity.Admission{
		Configuration: config, Evaluator: checks, Metrics: recorder,
		NamespaceGetter: securityReads{st}, PodLister: securityReads{st},
	}
	if err := judge.CompleteConfiguration(); err != nil {
		return podSecurity{}, fmt.Errorf("configuration of admission plug-in %s: %w", podSecurityPlugin, err)
	}
	if err := judge.ValidateConfiguration(); err != nil {
		return podSecurity{}, fmt.Errorf("configuration of admission plug-in %s: %w", podSecurityPlugin, err)
	}
	return podSecurity{judge}, nil
}

// securityReads is what the judge needs to see besides what is written.
type securityReads struct{ stores }

// GetNamespace implements podsecurity.NamespaceGetter.
func (r securityReads) GetNamespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	return r.namespace(ctx, name)
}

// ListPods implements podsecurity.PodLister.
func (r securityReads) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	pods := r.stores["pods"]
	list, err := pods.List(pods.within(ctx, namespace), &metainternal.ListOptions{})
	if err != nil {
		return nil, err
	}
	items := list.(*corev1.PodList).Items
	all := make([]*corev1.Pod, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all, nil
}

// Handles implements admission.Interface.
func (podSecurity) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface.
func (p podSecurity) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	switch a.GetResource().GroupResource() {
	case corev1.Resource("pods"), corev1.Resource("namespaces"): // there are no other kinds with pods in them
	default:
		return nil
	}
	said := p.judge.Validate(ctx, securityAttributes{a})
	for _, words := range said.Warnings {
		warning.AddWarning(ctx, "", words)
	}
	for key, value := range said.AuditAnnotations {
		_ = a.AddAnnotation(podsecuritylabels.AuditAnnotationPrefix+key, value) // the keys are the judge's and good ones
	}
	switch {
	case said.Allowed:
		return nil
	case said.Result == nil:
		return admission.NewForbidden(a, fmt.Errorf("not allowed by %s", podSecurityPlugin))
	}
	return &apierrors.StatusError{ErrStatus: *said.Result.DeepCopy()}
}

// securityAttributes shows the judge an admission request in its own terms.
type securityAttributes struct{ admission.Attributes }

var _ podsecuritylabels.Attributes = securityAttributes{}

// GetName is the object's name, or what it is generated from.
func (a securityAttributes) GetName() string {
	if name := a.Attributes.GetName(); name != "" {
		return name
	}
	return objectName(a.Attributes.GetObject())
}

// GetObject implements podsecuritylabels.Attributes.
func (a securityAttributes) GetObject() (runtime.Object, error) { return a.Attributes.GetObject(), nil }

// GetOldObject implements podsecuritylabels.Attributes.
func (a securityAttributes) GetOldObject() (runtime.Object, error) {
	return a.Attributes.GetOldObject(), nil
}

// GetOperation implements podsecuritylabels.Attributes.
func (a securityAttributes) GetOperation() admissionv1.Operation {
	return admissionv1.Operation(a.Attributes.GetOperation())
}

// GetUserName implements podsecuritylabels.Attributes.
func (a securityAttributes) GetUserName() string {
	if u := a.GetUserInfo(); u != nil {
		return u.GetName()
	}
	return ""
}
