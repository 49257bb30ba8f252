// SPDX-License-Identifier: Apache-2.0

package flowcontrol

import (
	"fmt"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/util/shufflesharding"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// What absent fields mean, and bounds: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/ and the
// API reference.
const (
	defaultShares      = 30
	defaultQueues      = 64
	defaultHand        = 8
	defaultQueueLength = 50
	defaultPrecedence  = 1000
	maxPrecedence      = 10000
	maxQueues          = 10_000_000
	maxHandBits        = 60 // a request's hand is dealt from a hash of 64 bits
	maxHand            = 19 // 20! takes more than that, however few queues there are
)

// SetDefaultsFlowSchema fills in the precedence.
func SetDefaultsFlowSchema(s *flowcontrolv1.FlowSchema) {
	rules.OrElse(&s.Spec.MatchingPrecedence, defaultPrecedence)
}

// SetDefaultsPriorityLevelConfiguration fills in shares and queues.
func SetDefaultsPriorityLevelConfiguration(p *flowcontrolv1.PriorityLevelConfiguration) {
	if e := p.Spec.Exempt; e != nil {
		orElsePtr(&e.NominalConcurrencyShares, 0)
		orElsePtr(&e.LendablePercent, 0)
	}
	l := p.Spec.Limited
	if l == nil {
		return
	}
	orElsePtr(&l.NominalConcurrencyShares, defaultShares)
	orElsePtr(&l.LendablePercent, 0)
	if q := l.LimitResponse.Queuing; q != nil {
		rules.OrElse(&q.Queues, defaultQueues)
		rules.OrElse(&q.HandSize, defaultHand)
		rules.OrElse(&q.QueueLengthLimit, defaultQueueLength)
	}
}

func orElsePtr(p **int32, value int32) {
	if *p == nil {
		*p = ptr.To(value)
	}
}

// ValidateFlowSchema checks a flow schema.
func ValidateFlowSchema(s *flowcontrolv1.FlowSchema) field.ErrorList {
	all := rules.ClusterMeta(&s.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	spec := field.NewPath("spec")
	exempt := s.Name == flowcontrolv1.FlowSchemaNameExempt
	switch p := s.Spec.MatchingPrecedence; {
	case p < 1 || p > maxPrecedence:
		all = append(all, field.Invalid(spec.Child("matchingPrecedence"), p,
			fmt.Sprintf("must be between 1 and %d, inclusive", maxPrecedence)))
	case p == 1 && !exempt:
		all = append(all, field.Invalid(spec.Child("matchingPrecedence"), p,
			"only the schema named 'exempt' may have matchingPrecedence 1"))
	}
	if d := s.Spec.DistinguisherMethod; d != nil {
		known := []flowcontrolv1.FlowDistinguisherMethodType{flowcontrolv1.FlowDistinguisherMethodByUserType,
			flowcontrolv1.FlowDistinguisherMethodByNamespaceType}
		if !slices.Contains(known, d.Type) {
			all = append(all, field.NotSupported(spec.Child("distinguisherMethod", "type"), d.Type, known))
		}
	}
	name := spec.Child("priorityLevelConfiguration", "name")
	if s.Spec.PriorityLevelConfiguration.Name == "" {
		all = append(all, field.Required(name, "must reference a priority level"))
	} else {
		for _, msg := range apivalidation.NameIsDNSSubdomain(s.Spec.PriorityLevelConfiguration.Name, false) {
			all = append(all, field.Invalid(name, s.Spec.PriorityLevelConfiguration.Name, msg))
		}
	}
	for i := range s.Spec.Rules {
		all = append(all, flowRule(&s.Spec.Rules[i], spec.Child("rules").Index(i))...)
	}
	for _, own := range bootstrap.MandatoryFlowSchemas {
		if own.Name == s.Name && !equality.Semantic.DeepEqual(own.Spec, s.Spec) {
			all = append(all,
				field.Forbidden(spec, fmt.Sprintf("the schema %q is the server's own and cannot be changed", s.Name)))
		}
	}
	for i, c := range s.Status.Conditions {
		all = append(all, conditionType(string(c.Type), i)...)
	}
	return field.ErrorList(all)
}

func conditionType(kind string, i int) rules.Errs {
	if kind == "" {
		return rules.Errs{field.Required(field.NewPath("status", "conditions").Index(i).Child("type"), "")}
	}
	return nil
}

// ValidateFlowSchemaUpdate checks metadata and the schema.
func ValidateFlowSchemaUpdate(now, was *flowcontrolv1.FlowSchema) field.ErrorList {
	return append(field.ErrorList(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)), ValidateFlowSchema(now)...)
}

func flowRule(r *flowcontrolv1.PolicyRulesWithSubjects, at *field.Path) (all rules.Errs) {
	if len(r.Subjects) == 0 {
		all = append(all, field.Required(at.Child("subjects"), "subjects must contain at least one value"))
	}
	for i := range r.Subjects {
		all = append(all, flowSubject(&r.Subjects[i], at.Child("subjects").Index(i))...)
	}
	if len(r.ResourceRules) == 0 && len(r.NonResourceRules) == 0 {
		all = append(all, field.Required(at, "at least one of resourceRules and nonResourceRules has to be non-empty"))
	}
	for i := range r.ResourceRules {
		rule, at := &r.ResourceRules[i], at.Child("resourceRules").Index(i)
		all = append(all, flowVerbs(rule.Verbs, at.Child("verbs"))...)
		all = append(all, starAlone(rule.APIGroups, at.Child("apiGroups"))...)
		all = append(all, starAlone(rule.Resources, at.Child("resources"))...)
		if len(rule.Namespaces) == 0 && !rule.ClusterScope {
			all = append(all, field.Required(at.Child("namespaces"),
				"resource rules that are not cluster scoped must supply at least one namespace"))
		} else if slices.Contains(rule.Namespaces, flowcontrolv1.NamespaceEvery) && len(rule.Namespaces) > 1 {
			all = append(all, field.Invalid(at.Child("namespaces"), rule.Namespaces,
				"if '*' is present, must not specify other namespaces"))
		} else {
			all = append(all, flowNamespaces(rule.Namespaces, at.Child("namespaces"))...)
		}
	}
	for i := range r.NonResourceRules {
		rule, at := &r.NonResourceRules[i], at.Child("nonResourceRules").Index(i)
		all = append(all, flowVerbs(rule.Verbs, at.Child("verbs"))...)
		all = append(all, starAlone(rule.NonResourceURLs, at.Child("nonResourceURLs"))...)
		for j, url := range rule.NonResourceURLs {
			if url != "*" && (!strings.HasPrefix(url, "/") || strings.Contains(url, " ") ||
				strings.Contains(strings.TrimSuffix(url, "/*"), "*")) {
				all = append(all, field.Invalid(at.Child("nonResourceURLs").Index(j), url,
					"must be '*', or begin with '/', without spaces, and have a '*' only as the whole last segment"))
			}
		}
	}
	return all
}

func flowNamespaces(names []string, at *field.Path) (all rules.Errs) {
	for i, name := range names {
		if name == flowcontrolv1.NamespaceEvery {
			continue
		}
		for _, msg := range apivalidation.ValidateNamespaceName(name, false) {
			all = append(all, field.Invalid(at.Index(i), name,
				"each member of this list must be '*' or a DNS-1123 label; "+msg))
		}
	}
	return all
}

func flowVerbs(verbs []string, at *field.Path) (all rules.Errs) {
	all = starAlone(verbs, at)
	known := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy",
		"bind", "impersonate", "escalate", "approve", "sign", "use", "head", "options", "post", "put", "*"}
	for i, v := range verbs {
		if !slices.Contains(known, v) {
			all = append(all, field.NotSupported(at.Index(i), v, known))
		}
	}
	return all
}

// starAlone: something must be there, and if it is '*', nothing else.
func starAlone(values []string, at *field.Path) (all rules.Errs) {
	if len(values) == 0 {
		return rules.Errs{field.Required(at, "must contain at least one value")}
	}
	if slices.Contains(values, "*") && len(values) > 1 {
		all = append(all, field.Invalid(at, values, "if '*' is present, must not specify other values"))
	}
	return all
}

// flowSubject checks that the one field is there which the kind names.
func flowSubject(s *flowcontrolv1.Subject, at *field.Path) (all rules.Errs) {
	type part struct {
		kind  flowcontrolv1.SubjectKind
		field string
		there bool
	}
	parts := []part{
		{flowcontrolv1.SubjectKindUser, "user", s.User != nil},
		{flowcontrolv1.SubjectKindGroup, "group", s.Group != nil},
		{flowcontrolv1.SubjectKindServiceAccount, "serviceAccount", s.ServiceAccount != nil},
	}
	if !slices.ContainsFunc(parts, func(p part) bool { return p.kind == s.Kind }) {
		return rules.Errs{field.NotSupported(at.Child("kind"), s.Kind, []string{"User", "Group", "ServiceAccount"})}
	}
	for _, p := range parts {
		switch {
		case p.kind == s.Kind && !p.there:
			all = append(all, field.Required(at.Child(p.field),
				fmt.Sprintf("%s is required when subject kind is '%s'", p.field, s.Kind)))
		case p.kind != s.Kind && p.there:
			all = append(all, field.Forbidden(at.Child(p.field),
				fmt.Sprintf("%s is forbidden when subject kind is not '%s'", p.field, p.kind)))
		}
	}
	switch {
	case s.Kind == flowcontrolv1.SubjectKindUser && s.User != nil && s.User.Name == "":
		all = append(all, field.Required(at.Child("user", "name"), ""))
	case s.Kind == flowcontrolv1.SubjectKindGroup && s.Group != nil && s.Group.Name == "":
		all = append(all, field.Required(at.Child("group", "name"), ""))
	case s.Kind == flowcontrolv1.SubjectKindServiceAccount && s.ServiceAccount != nil:
		all = append(all, flowAccount(s.ServiceAccount, at.Child("serviceAccount"))...)
	}
	return all
}

func flowAccount(a *flowcontrolv1.ServiceAccountSubject, at *field.Path) (all rules.Errs) {
	if a.Name == "" {
		all = append(all, field.Required(at.Child("name"), ""))
	} else if a.Name != flowcontrolv1.NameAll {
		for _, msg := range apivalidation.ValidateServiceAccountName(a.Name, false) {
			all = append(all, field.Invalid(at.Child("name"), a.Name, msg))
		}
	}
	if a.Namespace == "" {
		return append(all, field.Required(at.Child("namespace"), "must specify namespace for service account"))
	}
	for _, msg := range apivalidation.ValidateNamespaceName(a.Namespace, false) {
		all = append(all, field.Invalid(at.Child("namespace"), a.Namespace, msg))
	}
	return all
}

// ValidatePriorityLevelConfiguration checks a priority level.
func ValidatePriorityLevelConfiguration(p *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	all := rules.ClusterMeta(&p.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	spec := field.NewPath("spec")
	exempt := p.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt
	switch p.Spec.Type {
	case flowcontrolv1.PriorityLevelEnablementExempt:
		if p.Spec.Limited != nil {
			all = append(all, field.Forbidden(spec.Child("limited"), "must be nil if the type is not Limited"))
		}
		if e := p.Spec.Exempt; e != nil {
			all = append(all, sharesOf(e.NominalConcurrencyShares, e.LendablePercent, spec.Child("exempt"))...)
		}
	case flowcontrolv1.PriorityLevelEnablementLimited:
		if p.Spec.Exempt != nil {
			all = append(all, field.Forbidden(spec.Child("exempt"), "must be nil if the type is Limited"))
		}
		if p.Spec.Limited == nil {
			all = append(all, field.Required(spec.Child("limited"), "must not be empty when type is Limited"))
		} else {
			all = append(all, limitedLevel(p.Spec.Limited, spec.Child("limited"))...)
		}
	default:
		all = append(all, field.NotSupported(spec.Child("type"), p.Spec.Type, []string{"Exempt", "Limited"}))
	}
	if exempt != (p.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt) {
		all = append(all, field.Invalid(spec.Child("type"), p.Spec.Type,
			"type must be 'Exempt' if and only if name is 'exempt'"))
	}
	if own := bootstrap.MandatoryPriorityLevelConfigurationCatchAll; own.Name == p.Name &&
		!equality.Semantic.DeepEqual(own.Spec, p.Spec) {
		all = append(all, field.Forbidden(spec, fmt.Sprintf("the level %q is the server's own and cannot be changed",
			p.Name)))
	}
	for i, c := range p.Status.Conditions {
		all = append(all, conditionType(string(c.Type), i)...)
	}
	return field.ErrorList(all)
}

// ValidatePriorityLevelConfigurationUpdate checks metadata and the level.
func ValidatePriorityLevelConfigurationUpdate(now, was *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	return append(field.ErrorList(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)),
		ValidatePriorityLevelConfiguration(now)...)
}

func sharesOf(shares, lendable *int32, at *field.Path) (all rules.Errs) {
	if s := ptr.Deref(shares, 0); s < 0 {
		all = append(all, field.Invalid(at.Child("nominalConcurrencyShares"), s, "must be a non-negative integer"))
	}
	if l := ptr.Deref(lendable, 0); l < 0 || l > 100 {
		all = append(all, field.Invalid(at.Child("lendablePercent"), l, "must be between 0 and 100, inclusive"))
	}
	return all
}

func limitedLevel(l *flowcontrolv1.LimitedPriorityLevelConfiguration, at *field.Path) rules.Errs {
	all := sharesOf(l.NominalConcurrencyShares, l.LendablePercent, at)
	if b := ptr.Deref(l.BorrowingLimitPercent, 0); b < 0 {
		all = append(all, field.Invalid(at.Child("borrowingLimitPercent"), b,
			"if specified, must be a non-negative integer"))
	}
	response, queuing := at.Child("limitResponse"), l.LimitResponse.Queuing
	switch l.LimitResponse.Type {
	case flowcontrolv1.LimitResponseTypeReject:
		if queuing != nil {
			all = append(all, field.Forbidden(response.Child("queuing"),
				"must be nil if limited.limitResponse.type is not Queue"))
		}
	case flowcontrolv1.LimitResponseTypeQueue:
		if queuing == nil {
			return append(all, field.Required(response.Child("queuing"),
				"must not be empty if limited.limitResponse.type is Queue"))
		}
		all = append(all, queues(queuing, response.Child("queuing"))...)
	default:
		all = append(all, field.NotSupported(response.Child("type"), l.LimitResponse.Type, []string{"Queue", "Reject"}))
	}
	return all
}

func queues(q *flowcontrolv1.QueuingConfiguration, at *field.Path) (all rules.Errs) {
	if q.QueueLengthLimit <= 0 {
		all = append(all, field.Invalid(at.Child("queueLengthLimit"), q.QueueLengthLimit, "must be positive"))
	}
	if q.Queues <= 0 {
		all = append(all, field.Invalid(at.Child("queues"), q.Queues, "must be positive"))
	} else if q.Queues > maxQueues {
		all = append(all, field.Invalid(at.Child("queues"), q.Queues,
			fmt.Sprintf("must not be greater than %d", maxQueues)))
	}
	hand := at.Child("handSize")
	switch {
	case q.HandSize <= 0:
		all = append(all, field.Invalid(hand, q.HandSize, "must be positive"))
	case q.Queues > 0 && q.HandSize > q.Queues:
		all = append(all, field.Invalid(hand, q.HandSize, fmt.Sprintf("should not be greater than queues (%d)",
			q.Queues)))
	case q.HandSize > maxHand || q.Queues > 0 && shufflesharding.RequiredEntropyBits(int(q.Queues),
		int(q.HandSize)) > maxHandBits:
		all = append(all,
			field.Invalid(hand, q.HandSize,
				fmt.Sprintf("too large for %d queues: dealing a hand would take more than %d bits", q.Queues,
					maxHandBits)))
	}
	return all
}
