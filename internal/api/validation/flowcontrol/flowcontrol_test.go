// SPDX-License-Identifier: Apache-2.0

package flowcontrol

import (
	"slices"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/utils/ptr"
)

// The objects that every cluster has pass, and have their defaults already.
func TestBootstrapFlowControl(t *testing.T) {
	for _, s := range slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas) {
		s = s.DeepCopy()
		SetDefaultsFlowSchema(s)
		if errs := ValidateFlowSchema(s); len(errs) > 0 {
			t.Errorf("%s: %v", s.Name, errs)
		}
	}
	for _, p := range slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations) {
		p = p.DeepCopy()
		SetDefaultsPriorityLevelConfiguration(p)
		if errs := ValidatePriorityLevelConfiguration(p); len(errs) > 0 {
			t.Errorf("%s: %v", p.Name, errs)
		}
	}
}

// KEP-1040: flow schemas are refused for what Kubernetes refuses, with its field paths.
func TestValidateFlowSchema(t *testing.T) {
	base := func() *flowcontrolv1.FlowSchema {
		s := bootstrap.SuggestedFlowSchemaServiceAccounts.DeepCopy()
		s.Name = "mine"
		return s
	}
	for want, change := range map[string]func(*flowcontrolv1.FlowSchema){
		"": func(*flowcontrolv1.FlowSchema) {},
		"spec.matchingPrecedence: Invalid value: 0":                    func(s *flowcontrolv1.FlowSchema) { s.Spec.MatchingPrecedence = 0 },
		"spec.matchingPrecedence: Invalid value: 10001":                func(s *flowcontrolv1.FlowSchema) { s.Spec.MatchingPrecedence = 10001 },
		"only the schema named 'exempt'":                               func(s *flowcontrolv1.FlowSchema) { s.Spec.MatchingPrecedence = 1 },
		"spec.distinguisherMethod.type: Unsupported value: \"ByMood\"": func(s *flowcontrolv1.FlowSchema) { s.Spec.DistinguisherMethod.Type = "ByMood" },
		"spec.priorityLevelConfiguration.name: Required":               func(s *flowcontrolv1.FlowSchema) { s.Spec.PriorityLevelConfiguration.Name = "" },
		"spec.priorityLevelConfiguration.name: Invalid":                func(s *flowcontrolv1.FlowSchema) { s.Spec.PriorityLevelConfiguration.Name = "A b" },
		"spec.rules[0].subjects: Required":                             func(s *flowcontrolv1.FlowSchema) { s.Spec.Rules[0].Subjects = nil },
		"spec.rules[0]: Required value: at least one of": func(s *flowcontrolv1.FlowSchema) {
			s.Spec.Rules[0].ResourceRules, s.Spec.Rules[0].NonResourceRules = nil, nil
		},
		"spec.rules[0].subjects[0].kind: Unsupported": func(s *flowcontrolv1.FlowSchema) { s.Spec.Rules[0].Subjects[0].Kind = "Robot" },
		"spec.rules[0].subjects[0].user: Required":    func(s *flowcontrolv1.FlowSchema) { s.Spec.Rules[0].Subjects[0].Kind = "User" },
		"spec.rules[0].subjects[0].user: Forbidden": func(s *flowcontrolv1.FlowSchema) {
			s.Spec.Rules[0].Subjects[0].User = &flowcontrolv1.UserSubject{Name: "u"}
		},
		"spec.rules[0].subjects[0].group.name: Required": func(s *flowcontrolv1.FlowSchema) { s.Spec.Rules[0].Subjects[0].Group.Name = "" },
		"spec.rules[0].subjects[0].serviceAccount.namespace: Required": func(s *flowcontrolv1.FlowSchema) {
			s.Spec.Rules[0].Subjects[0] = flowcontrolv1.Subject{Kind: "ServiceAccount", ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Name: "*"}}
		},
		"spec.rules[0].resourceRules[0].verbs: Required":       func(s *flowcontrolv1.FlowSchema) { s.Spec.Rules[0].ResourceRules[0].Verbs = nil },
		"spec.rules[0].resourceRules[0].verbs: Invalid":        func(s *flowcontrolv1.FlowSchema) { s.Spec.Rules[0].ResourceRules[0].Verbs = []string{"*", "get"} },
		"spec.rules[0].resourceRules[0].verbs[0]: Unsupported": func(s *flowcontrolv1.FlowSchema) { s.Spec.Rules[0].ResourceRules[0].Verbs = []string{"dance"} },
		"spec.rules[0].resourceRules[0].apiGroups: Required":   func(s *flowcontrolv1.FlowSchema) { s.Spec.Rules[0].ResourceRules[0].APIGroups = nil },
		"spec.rules[0].resourceRules[0].resources: Invalid":    func(s *flowcontrolv1.FlowSchema) { s.Spec.Rules[0].ResourceRules[0].Resources = []string{"pods", "*"} },
		"spec.rules[0].resourceRules[0].namespaces: Required": func(s *flowcontrolv1.FlowSchema) {
			r := &s.Spec.Rules[0].ResourceRules[0]
			r.Namespaces, r.ClusterScope = nil, false
		},
		"spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid": func(s *flowcontrolv1.FlowSchema) {
			s.Spec.Rules[0].NonResourceRules[0].NonResourceURLs = []string{"healthz"}
		},
		"metadata.name: Invalid": func(s *flowcontrolv1.FlowSchema) { s.Name = "A" },
		"spec: Forbidden: the schema \"catch-all\" is the server's own": func(s *flowcontrolv1.FlowSchema) { s.Name = "catch-all" },
	} {
		s := base()
		change(s)
		errs := ValidateFlowSchema(s).ToAggregate()
		if (errs == nil) != (want == "") || errs != nil && !strings.Contains(errs.Error(), want) {
			t.Errorf("%v\nwant %s", errs, want)
		}
	}
}

// KEP-1040: so are priority levels.
func TestValidatePriorityLevelConfiguration(t *testing.T) {
	type level = flowcontrolv1.PriorityLevelConfiguration
	base := func() *level {
		p := bootstrap.SuggestedPriorityLevelConfigurationWorkloadLow.DeepCopy()
		p.Name = "mine"
		return p
	}
	queuing := func(p *level) *flowcontrolv1.QueuingConfiguration { return p.Spec.Limited.LimitResponse.Queuing }
	for want, change := range map[string]func(*level){
		"":                                func(*level) {},
		"spec.type: Unsupported value":    func(p *level) { p.Spec.Type = "Free" },
		"spec.limited: Required":          func(p *level) { p.Spec.Limited = nil },
		"spec.exempt: Forbidden":          func(p *level) { p.Spec.Exempt = &flowcontrolv1.ExemptPriorityLevelConfiguration{} },
		"if and only if name is 'exempt'": func(p *level) { p.Name = "exempt" },
		"spec.limited: Forbidden":         func(p *level) { p.Name, p.Spec.Type = "exempt", "Exempt" },
		"spec.limited.nominalConcurrencyShares: Invalid":       func(p *level) { p.Spec.Limited.NominalConcurrencyShares = ptr.To(int32(-1)) },
		"spec.limited.lendablePercent: Invalid":                func(p *level) { p.Spec.Limited.LendablePercent = ptr.To(int32(101)) },
		"spec.limited.borrowingLimitPercent: Invalid":          func(p *level) { p.Spec.Limited.BorrowingLimitPercent = ptr.To(int32(-1)) },
		"spec.limited.limitResponse.type: Unsupported":         func(p *level) { p.Spec.Limited.LimitResponse.Type = "Wait" },
		"spec.limited.limitResponse.queuing: Forbidden":        func(p *level) { p.Spec.Limited.LimitResponse.Type = "Reject" },
		"spec.limited.limitResponse.queuing: Required":         func(p *level) { p.Spec.Limited.LimitResponse.Queuing = nil },
		"limitResponse.queuing.queues: Invalid value: 0":       func(p *level) { queuing(p).Queues = 0 },
		"limitResponse.queuing.queues: Invalid value: 2147483": func(p *level) { queuing(p).Queues, queuing(p).HandSize = 2147483647, 2147483647 },
		"limitResponse.queuing.handSize: Invalid value: 0":     func(p *level) { queuing(p).HandSize = 0 },
		"should not be greater than queues (128)":              func(p *level) { queuing(p).HandSize = 129 },
		"too large for 128 queues":                             func(p *level) { queuing(p).HandSize = 10 },
		"limitResponse.queuing.queueLengthLimit: Invalid":      func(p *level) { queuing(p).QueueLengthLimit = 0 },
		"spec: Forbidden: the level \"catch-all\"":             func(p *level) { p.Name = "catch-all" },
	} {
		p := base()
		change(p)
		errs := ValidatePriorityLevelConfiguration(p).ToAggregate()
		if (errs == nil) != (want == "") || errs != nil && !strings.Contains(errs.Error(), want) {
			t.Errorf("%v\nwant %s", errs, want)
		}
	}
	p := &level{Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: "Limited", Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
		LimitResponse: flowcontrolv1.LimitResponse{Type: "Queue", Queuing: &flowcontrolv1.QueuingConfiguration{}}}}}
	SetDefaultsPriorityLevelConfiguration(p)
	if q := queuing(p); *p.Spec.Limited.NominalConcurrencyShares != 30 || *p.Spec.Limited.LendablePercent != 0 || q.Queues != 64 || q.HandSize != 8 || q.QueueLengthLimit != 50 {
		t.Errorf("%+v", p.Spec)
	}
}
