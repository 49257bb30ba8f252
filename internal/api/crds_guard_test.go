// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Custom resources pass the same authentication, authorisation and admission as everything else.
func TestCustomResourcesAreGuarded(t *testing.T) {
	ns := namespace(t, client(t))
	e := define(t, adminConfig(t), widgets)
	if _, err := e.widgets("v1", "nowhere").Create(t.Context(), e.widget(t, "a", "{color: red}"),
		metav1.CreateOptions{}); !apierrors.IsNotFound(err) ||
		!strings.Contains(err.Error(), `namespaces "nowhere" not found`) {
		t.Errorf("in a namespace that is not there: %v", err)
	}
	jane := rest.AnonymousClientConfig(adminConfig(t))
	jane.BearerToken = "jane-token"
	nobody := rest.AnonymousClientConfig(adminConfig(t))
	for who, config := range map[string]*rest.Config{"jane": jane, "nobody": nobody} {
		w := extension{dynamicOf(t, config), nil, e.group}.widgets("v1", ns)
		_, err := w.List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) ||
			who == "jane" && !strings.Contains(err.Error(), `User "jane" cannot list resource "widgets" in API group "`+
				e.group+`"`) {
			t.Errorf("%s: %v", who, err)
		}
		if _, err := extensionsOf(t, config).ApiextensionsV1().CustomResourceDefinitions().List(t.Context(),
			metav1.ListOptions{}); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			t.Errorf("%s lists definitions: %v", who, err)
		}
	}
	rule := fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: few-%[1]s}, spec: {
		matchConstraints: {resourceRules: [{apiGroups: [%[1]s], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]},
		validations: [{expression: "object.spec.replicas < 3", message: "too many"}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: few-%[1]s}, spec: {policyName: few-%[1]s, validationActions: [Deny]}}
`, e.group)
	kubectl(t, rule, "apply")
	t.Cleanup(func() {
		kubectl(t, "", "delete", "validatingadmissionpolicies,validatingadmissionpolicybindings", "few-"+e.group)
	})
	// Policies take hold when the server has heard of them; a dry run tells.
	w := e.widgets("v1", ns)
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := w.Create(t.Context(), e.widget(t, "many", "{color: red, replicas: 4}"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "too many") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the policy does not hold for custom resources: %v", err)
		}
	}
}
