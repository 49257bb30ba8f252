// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// part is something that was written by hand, and what Kubernetes has for it.
type part struct {
	name   string
	ours   []string // files and folders, from the root of the repository
	theirs []string // IMPORT/PATH.Name, below k8s.io/kubernetes unless it begins with k8s.io
}

const (
	core  = "pkg/apis/core/validation."
	admit = "plugin/pkg/admission/"
	loops = "pkg/controller/"
)

// parts are all that was written by hand, except the Pod's rules, debugging, and what runs pods.
func parts() []part {
	return []part{
		{"quota-usage", []string{"internal/api/quota"},
			[]string{"pkg/quota/v1/evaluator/core.NewPodEvaluator", "pkg/quota/v1/evaluator/core.NewServiceEvaluator"}},
		{"quota-charging", []string{"internal/api/resourcequota"},
			[]string{"k8s.io/apiserver/pkg/admission/plugin/resourcequota.NewResourceQuota",
				"pkg/quota/v1/install.NewQuotaConfigurationForAdmission", loops + "resourcequota.NewController"}},
		{"limit-ranges", []string{"internal/api/limitrange", "internal/api/admission/limits.go"},
			[]string{admit + "limitranger.NewLimitRanger"}},
		{"rbac-evaluation", []string{"internal/api/rbac/decide.go", "internal/api/rbac/match.go",
			"internal/api/rbac/policy.go", "internal/api/rbac/reach.go", "internal/api/authz/policy.go"},
			[]string{"plugin/pkg/auth/authorizer/rbac.New"}},
		{"rbac-escalation", []string{"internal/api/rbac/escalation.go", "internal/api/authz/escalation.go"},
			[]string{"pkg/registry/rbac/validation.ConfirmNoEscalation",
				"pkg/registry/rbac/role/policybased.NewStorage", "pkg/registry/rbac/clusterrole/policybased.NewStorage",
				"pkg/registry/rbac/rolebinding/policybased.NewStorage",
				"pkg/registry/rbac/clusterrolebinding/policybased.NewStorage"}},
		{"rbac-default-roles", []string{"internal/api/rbac/defaults.go", "internal/api/rbac/defaults_components.go",
			"internal/api/rbac/defaults_system.go", "internal/api/rbac/defaults_users.go",
			"internal/api/authz/defaults.go"},
			[]string{"plugin/pkg/auth/authorizer/rbac/bootstrappolicy.ClusterRoles",
				"plugin/pkg/auth/authorizer/rbac/bootstrappolicy.ControllerRoles"}},
		{"reviews", []string{"internal/api/authz/reviews.go", "internal/api/authn/reviews.go"},
			[]string{"pkg/registry/authorization/subjectaccessreview.NewREST",
				"pkg/registry/authorization/selfsubjectrulesreview.NewREST",
				"pkg/registry/authentication/tokenreview.NewREST",
				"pkg/registry/authentication/selfsubjectreview.NewREST"}},
		{"node-authorisation", []string{"internal/api/nodeauth", "internal/api/authz/node.go",
			"internal/api/admission/noderestriction"},
			[]string{"plugin/pkg/auth/authorizer/node.NewAuthorizer", admit + "noderestriction.NewPlugin"}},
		{"tables", []string{"internal/api/table"}, []string{"pkg/printers/internalversion.AddHandlers"}},
		{"field-selectors", []string{"internal/api/schemes/labels.go"},
			[]string{"pkg/registry/core/pod.ToSelectableFields", "pkg/apis/core/v1.AddFieldLabelConversionsForEvent",
				"pkg/registry/core/event.ToSelectableFields"}},
		{"validation-core", validates("configmap", "endpoints", "event", "limitrange", "namespace", "node",
			"resourcequota", "secret", "service", "serviceaccount", "address"),
			[]string{core + "ValidateConfigMap", core + "ValidateEndpointsUpdate", core + "ValidateEventCreate",
				core + "ValidateLimitRange", core + "ValidateNamespace", core + "ValidateNode",
				core + "ValidateResourceQuota", core + "ValidateSecret", core + "ValidateServiceCreate",
				core + "ValidateServiceAccount"}},
		{"validation-rbac", validates("rbac"), []string{"pkg/apis/rbac/validation.ValidateClusterRoleUpdate",
			"pkg/apis/rbac/validation.ValidateRoleBindingUpdate"}},
		{"validation-small", validates("endpointslice", "lease", "priorityclass", "runtimeclass"),
			[]string{"pkg/apis/discovery/validation.ValidateEndpointSlice",
				"pkg/apis/coordination/validation.ValidateLeaseUpdate",
				"pkg/apis/scheduling/validation.ValidatePriorityClassUpdate",
				"pkg/apis/node/validation.ValidateRuntimeClassUpdate"}},
		{"validation-admission", []string{"internal/api/validation/admissionregistration"},
			[]string{"pkg/apis/admissionregistration/validation.ValidateValidatingAdmissionPolicyUpdate",
				"pkg/apis/admissionregistration/validation.ValidateMutatingWebhookConfigurationUpdate"}},
		{"validation-certificates", validates("certificates/certificates"),
			[]string{"pkg/apis/certificates/validation.ValidateCertificateSigningRequestUpdate"}},
		{"validation-flowcontrol", validates("flowcontrol/flowcontrol"),
			[]string{"pkg/apis/flowcontrol/validation.ValidateFlowSchemaUpdate"}},
		{"strategies", []string{"internal/api/kinds", "internal/api/schemes/defaults.go",
			"internal/api/registry/ruled.go"}, strategies()},
		{"account-tokens", []string{"internal/api/authn/token.go", "internal/api/authn/token_request.go"},
			[]string{"pkg/serviceaccount.JWTTokenGenerator", "pkg/serviceaccount.NewValidator",
				"pkg/serviceaccount.NewOpenIDMetadataProvider"}},
		{"certificates", []string{"internal/controllers/certificates", "internal/api/admission/signers"},
			[]string{loops + "certificates/approver.NewCSRApprovingController",
				loops + "certificates/signer.NewCSRSigningController",
				loops + "certificates/cleaner.NewCSRCleanerController", admit + "certificates/approval.NewPlugin",
				admit + "certificates/signing.NewPlugin", admit + "certificates/subjectrestriction.NewPlugin"}},
		{"bootstrap-tokens", []string{"internal/controllers/bootstraptokens", "internal/api/authn/bootstrap.go"},
			[]string{"plugin/pkg/auth/authenticator/token/bootstrap.NewTokenAuthenticator",
				loops + "bootstrap.NewTokenCleaner"}},
		{"namespaces", []string{"internal/controllers/namespace"},
			[]string{loops + "namespace.NewNamespaceController"}},
		{"pod-garbage", []string{"internal/controllers/podgc"}, []string{loops + "podgc.NewPodGC"}},
		{"node-lifecycle", []string{"internal/controllers/nodelifecycle"},
			[]string{loops + "nodelifecycle.NewNodeLifecycleController", loops + "tainteviction.New"}},
		{"root-ca", []string{"internal/controllers/rootca"},
			[]string{loops + "certificates/rootcacertpublisher.NewPublisher"}},
		{"role-aggregation", []string{"internal/controllers/roleaggregation", "internal/api/rbac/aggregate.go"},
			[]string{loops + "clusterroleaggregation.NewClusterRoleAggregation"}},
		{"service-accounts", []string{"internal/controllers/serviceaccount"},
			[]string{loops + "serviceaccount.NewServiceAccountsController"}},
		{"policy-status", []string{"internal/api/admission/dynamic/typecheck.go"},
			[]string{loops + "validatingadmissionpolicystatus.NewController"}},
		{"pod-admission", []string{"internal/api/admission/account.go", "internal/api/admission/priority.go",
			"internal/api/admission/runtimeclass.go"},
			[]string{admit + "serviceaccount.NewServiceAccount", admit + "priority.NewPlugin",
				admit + "runtimeclass.NewRuntimeClass"}},
		{"service-addresses", []string{""},
			[]string{"pkg/registry/core/service/ipallocator.NewInMemory"}},
		{"scheduler", []string{"internal/controllers/scheduler"}, []string{"pkg/scheduler.New"}},
	}
}

// validates are files of the validation of the kinds but the Pod.
func validates(names ...string) (files []string) {
	for _, n := range names {
		files = append(files, "internal/api/validation/"+n+".go")
	}
	return files
}

// strategies are what test/agree compares with, all kinds but the Pod, with their defaults.
func strategies() (names []string) {
	for _, where := range strings.Fields(`core/configmap core/endpoint core/event core/limitrange core/namespace
		core/node core/resourcequota core/secret core/service core/serviceaccount coordination/lease
		discovery/endpointslice flowcontrol/flowschema
		flowcontrol/prioritylevelconfiguration node/runtimeclass rbac/clusterrole rbac/clusterrolebinding
		rbac/role rbac/rolebinding
		scheduling/priorityclass certificates/certificates admissionregistration/mutatingwebhookconfiguration
		admissionregistration/validatingwebhookconfiguration`) {
		names = append(names, "pkg/registry/"+where+".Strategy")
	}
	for _, where := range []string{"validatingadmissionpolicy", "validatingadmissionpolicybinding",
		"mutatingadmissionpolicy", "mutatingadmissionpolicybinding"} {
		names = append(names, "pkg/registry/admissionregistration/"+where+".NewStrategy")
	}
	for _, group := range strings.Fields(`admissionregistration certificates coordination core discovery events
		flowcontrol node rbac scheduling`) {
		names = append(names, "pkg/apis/"+group+"/install.Install")
	}
	return names
}
