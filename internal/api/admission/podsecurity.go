// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	"github.com/wherryproject/wherry/internal/api/admission/configfile"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
)

// podSecurity holds pods to the Pod Security Standard that their namespace's labels name, and namespaces to labels that
// mean something (EC-21). The judge is Kubernetes' own.
//
// Kinds with a template of pods are never refused for it, their writer is warned.
type podSecurity struct {
	judge *podsecurity.Admission
	reads securityReads
	types *schemes.Schemes
}

var _ admission.ValidationInterface = podSecurity{}

// newPodSecurity makes the plug-in. What its configuration lacks is an error for the user.
func newPodSecurity(reads securityReads, types *schemes.Schemes,
	config *podsecurityapi.PodSecurityConfiguration) (podSecurity, error) {
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
		NamespaceGetter: reads, PodLister: reads,
	}
	if err := judge.CompleteConfiguration(); err != nil {
		return podSecurity{}, fmt.Errorf("configuration of admission plug-in %s: %w", configfile.PodSecurityPlugin, err)
	}
	if err := judge.ValidateConfiguration(); err != nil {
		return podSecurity{}, fmt.Errorf("configuration of admission plug-in %s: %w", configfile.PodSecurityPlugin, err)
	}
	return podSecurity{judge, reads, types}, nil
}

// securityReads is what the judge needs to see besides what is written.
type securityReads struct {
	registry.Stores
	byFlag bool // the default level is that of --default-pod-security
}

// GetNamespace implements podsecurity.NamespaceGetter. kube-system, where what belongs to the node runs, has the level
// of its label only where the default comes from the flag: that is for those who share the server.
func (r securityReads) GetNamespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	ns, err := r.Namespace(ctx, name)
	if err != nil || !r.byFlag || name != metav1.NamespaceSystem ||
		ns.Labels[podsecuritylabels.EnforceLevelLabel] != "" {
		return ns, err
	}
	open := ns.DeepCopy()
	if open.Labels == nil {
		open.Labels = map[string]string{}
	}
	open.Labels[podsecuritylabels.EnforceLevelLabel] = string(podsecuritylabels.LevelPrivileged)
	return open, nil
}

// setDefaultLevel has namespaces without a level held to one (--default-pod-security). inFile tells that the
// configuration file is about that too: which of the two would win is not for the server to guess.
func setDefaultLevel(config *podsecurityapi.PodSecurityConfiguration, level string, inFile bool) error {
	if level == "" {
		return nil
	}
	if inFile {
		return fmt.Errorf("--default-pod-security %s: the plug-in %s of --admission-control-config-file has defaults as well: leave one of them out",
			level, configfile.PodSecurityPlugin)
	}
	if _, err := podsecuritylabels.ParseLevel(level); err != nil {
		return fmt.Errorf("--default-pod-security %q: choose one of privileged, baseline, restricted", level)
	}
	config.Defaults.Enforce = level
	return nil
}

// open reports whether nothing was decided about a namespace, so that it lets every pod in: whoever may make pods there
// may do to the node what root can. One that is labelled privileged is so on purpose.
func (p podSecurity) open(ctx context.Context, namespace string) (bool, error) {
	ns, err := p.reads.GetNamespace(ctx, namespace)
	if err != nil {
		return false, err
	}
	return ns.Labels[podsecuritylabels.EnforceLevelLabel] == "" &&
		p.judge.Configuration.Defaults.Enforce == string(podsecuritylabels.LevelPrivileged), nil
}

// level is what a namespace's pods are held to.
func (p podSecurity) level(ctx context.Context, namespace string) (podsecuritylabels.Level, error) {
	ns, err := p.reads.GetNamespace(ctx, namespace)
	if err != nil {
		return "", err
	}
	text := ns.Labels[podsecuritylabels.EnforceLevelLabel]
	if text == "" {
		text = p.judge.Configuration.Defaults.Enforce
	}
	level, _ := podsecuritylabels.ParseLevel(text) // of words that make no sense it is the strictest
	return level, nil
}

// ListPods implements podsecurity.PodLister.
func (r securityReads) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	pods := r.Stores["pods"]
	list, err := pods.List(pods.Within(ctx, namespace), &metainternal.ListOptions{})
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
	of := a.GetResource().GroupResource()
	if of != corev1.Resource("pods") && of != corev1.Resource("namespaces") &&
		!p.judge.PodSpecExtractor.HasPodSpec(of) {
		return nil
	}
	said := p.judge.Validate(ctx, securityAttributes{a, p.types})
	for _, words := range said.Warnings {
		warning.AddWarning(ctx, "", words)
	}
	for key, value := range said.AuditAnnotations {
		// the keys are the judge's and good ones
		_ = a.AddAnnotation(podsecuritylabels.AuditAnnotationPrefix+key, value)
	}
	switch {
	case said.Allowed:
		return nil
	case said.Result == nil:
		return admission.NewForbidden(a, fmt.Errorf("not allowed by %s", configfile.PodSecurityPlugin))
	}
	return &apierrors.StatusError{ErrStatus: *said.Result.DeepCopy()}
}

// securityAttributes shows the judge an admission request in its own terms.
type securityAttributes struct {
	admission.Attributes
	types *schemes.Schemes
}

var _ podsecuritylabels.Attributes = securityAttributes{}

// GetName is the object's name, or what it is generated from.
func (a securityAttributes) GetName() string {
	if name := a.Attributes.GetName(); name != "" {
		return name
	}
	return objectName(a.Attributes.GetObject())
}

// GetObject implements podsecuritylabels.Attributes.
func (a securityAttributes) GetObject() (runtime.Object, error) {
	return a.types.Versioned(a.Attributes.GetObject(), a.GetKind().GroupVersion())
}

// GetOldObject implements podsecuritylabels.Attributes.
func (a securityAttributes) GetOldObject() (runtime.Object, error) {
	return a.types.Versioned(a.Attributes.GetOldObject(), a.GetKind().GroupVersion())
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
