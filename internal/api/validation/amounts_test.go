// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNode(t *testing.T) {
	type no = corev1.Node
	amounts := corev1.ResourceList{"cpu": resource.MustParse("2"), "pods": resource.MustParse("110")}
	good := func() *no {
		n := &no{
			ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"},
			Spec:       corev1.NodeSpec{PodCIDR: "10.1.0.0/24", PodCIDRs: []string{"10.1.0.0/24"}, ProviderID: "p"},
			Status:     corev1.NodeStatus{Capacity: amounts.DeepCopy(), Addresses: []corev1.NodeAddress{{Type: "InternalIP", Address: "1.1.1.1"}}},
		}
		SetDefaultsNode(n)
		return n
	}
	if q := good().Status.Allocatable["cpu"]; q.String() != "2" {
		t.Error("allocatable is not the capacity")
	}
	taint := func(list ...corev1.Taint) func(*no) { return func(n *no) { n.Spec.Taints = list } }
	check(t, good, ValidateNode, []row[no]{
		{"taint key", taint(corev1.Taint{Effect: "NoSchedule"}), "spec.taints[0].key", ""},
		{"taint value", taint(corev1.Taint{Key: "a", Value: "b c", Effect: "NoSchedule"}), "spec.taints[0].value", ""},
		{"taint effect", taint(corev1.Taint{Key: "a", Effect: "x"}), "spec.taints[0].effect", "NoExecute"},
		{"taints alike", taint(corev1.Taint{Key: "a", Effect: "NoSchedule"}, corev1.Taint{Key: "a", Value: "b", Effect: "NoSchedule"}), "spec.taints[1]", "unique by key and effect"},
		{"pod CIDR", func(n *no) { n.Spec.PodCIDRs = []string{"x"} }, "spec.podCIDRs[0]", "CIDR"},
		{"pod CIDRs of one family", func(n *no) { n.Spec.PodCIDRs = []string{"10.1.0.0/24", "10.2.0.0/24"} }, "spec.podCIDRs", "for each IP family"},
		{"half a pod", func(n *no) { n.Status.Capacity["pods"] = resource.MustParse("1.5") }, "status.capacity[pods]", "integer"},
		{"swap", func(n *no) { n.Status.NodeInfo.Swap = &corev1.NodeSwapStatus{Capacity: new(int64)} }, "status.nodeInfo.swap.capacity", "greater than zero"},
		{"feature", func(n *no) { n.Status.DeclaredFeatures = []string{"a"} }, "status.declaredFeatures[0]", "UpperCamelCase"},
		{"features in disorder", func(n *no) { n.Status.DeclaredFeatures = []string{"B", "A/b"} }, "status.declaredFeatures[1]", "sorted"},
		{"a feature twice", func(n *no) { n.Status.DeclaredFeatures = []string{"A/b", "A/b"} }, "status.declaredFeatures[1]", "Duplicate"},
		{"capacity", func(n *no) { n.Status.Capacity["cpu"] = resource.MustParse("-1") }, "status.capacity[cpu]", "greater than or equal to 0"},
		{"addresses alike", func(n *no) { n.Status.Addresses = append(n.Status.Addresses, n.Status.Addresses[0]) }, "status.addresses[1]", "Duplicate"},
		{"preemption policy", func(n *no) {
			n.Spec.PodPreemptionPolicy = &corev1.NodePodPreemptionPolicy{DisableResizePreemption: []string{"a b"}}
		}, "spec.podPreemptionPolicy.disableResizePreemption[0]", ""},
	})
	checkUpdate(t, good, ValidateNodeUpdate, nil, []row[no]{
		{"taint", taint(corev1.Taint{Key: "a", Effect: "NoSchedule"}), "", ""},
		{"pod CIDR", func(n *no) { n.Spec.PodCIDR, n.Spec.PodCIDRs = "10.2.0.0/24", []string{"10.2.0.0/24"} }, "spec.podCIDRs", "may not change podCIDR"},
		{"provider", func(n *no) { n.Spec.ProviderID = "q" }, "spec.providerID", "may not change providerID"},
	})
}

func TestLimitRange(t *testing.T) {
	type lr = corev1.LimitRange
	list := func(cpu string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(cpu)} }
	good := func() *lr {
		l := &lr{ObjectMeta: object("l"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: "Container", Min: list("100m"), Max: list("2")}}}}
		SetDefaultsLimitRange(l)
		return l
	}
	item := good().Spec.Limits[0]
	if d, r := item.Default["cpu"], item.DefaultRequest["cpu"]; d.String() != "2" || r.String() != "2" {
		t.Errorf("defaults: %+v", item)
	}
	const l0 = "spec.limits[0]"
	first := func(change func(*corev1.LimitRangeItem)) func(*lr) { return func(l *lr) { change(&l.Spec.Limits[0]) } }
	check(t, good, ValidateLimitRange, []row[lr]{
		{"unknown type", first(func(i *corev1.LimitRangeItem) { i.Type = "Tape" }), l0 + ".type", "standard limit type"},
		{"types alike", func(l *lr) { l.Spec.Limits = append(l.Spec.Limits, l.Spec.Limits[0]) }, "spec.limits[1].type", "Duplicate"},
		{"min over max", first(func(i *corev1.LimitRangeItem) { i.Min = list("3") }), l0 + ".min[cpu]", "min value 3 is greater than max value 2"},
		{"default over max", first(func(i *corev1.LimitRangeItem) { i.Default = list("3") }), l0 + ".default[cpu]", "default value 3 is greater than max value 2"},
		{"request over default", first(func(i *corev1.LimitRangeItem) { i.Default = list("1") }), l0 + ".defaultRequest[cpu]", "default request value 2 is greater than default value 1"},
		{"ratio", first(func(i *corev1.LimitRangeItem) { i.MaxLimitRequestRatio = list("500m") }), l0 + ".maxLimitRequestRatio[cpu]", "less than 1"},
		{"ratio too big", first(func(i *corev1.LimitRangeItem) { i.MaxLimitRequestRatio = list("21") }), l0 + ".maxLimitRequestRatio[cpu]", "greater than max/min"},
		{"pod default", first(func(i *corev1.LimitRangeItem) { i.Type = "Pod" }), l0 + ".default", "may not be specified when `type` is 'Pod'"},
		{"resource", first(func(i *corev1.LimitRangeItem) { i.Max["disk"] = resource.MustParse("1") }), l0 + ".max[disk]", "standard resource"},
		{"claim", func(l *lr) { l.Spec.Limits = []corev1.LimitRangeItem{{Type: "PersistentVolumeClaim"}} }, l0 + ".limits", "minimum or maximum"},
	})
	checkUpdate(t, good, ValidateLimitRangeUpdate, nil, []row[lr]{{"max", first(func(i *corev1.LimitRangeItem) { i.Max = list("3") }), "", ""}})
}

func TestResourceQuota(t *testing.T) {
	type rq = corev1.ResourceQuota
	good := func() *rq {
		return &rq{ObjectMeta: object("q"), Spec: corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{"NotTerminating"}, Hard: corev1.ResourceList{
			"pods": resource.MustParse("10"), "requests.cpu": resource.MustParse("1500m"), "count/jobs.batch": resource.MustParse("1"), "requests.example.com/gpu": resource.MustParse("1"),
		}}}
	}
	expression := func(e corev1.ScopedResourceSelectorRequirement) func(*rq) {
		return func(q *rq) {
			q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{e}}
		}
	}
	const e0 = "spec.scopeSelector.matchExpressions"
	check(t, good, ValidateResourceQuota, []row[rq]{
		{"name", func(q *rq) { q.Spec.Hard["apples"] = resource.MustParse("1") }, "spec.hard[apples]", "standard resource for quota"},
		{"negative", func(q *rq) { q.Spec.Hard["pods"] = resource.MustParse("-1") }, "spec.hard[pods]", "greater than or equal to 0"},
		{"half a pod", func(q *rq) { q.Spec.Hard["pods"] = resource.MustParse("500m") }, "spec.hard[pods]", "must be an integer"},
		{"scope", func(q *rq) { q.Spec.Scopes = []corev1.ResourceQuotaScope{"x"} }, "spec.scopes", "unsupported scope"},
		{"scopes", func(q *rq) { q.Spec.Scopes = append(q.Spec.Scopes, "Terminating") }, "spec.scopes", "conflicting scopes"},
		{"SC-16 of best-effort pods only the number", func(q *rq) { q.Spec.Scopes = []corev1.ResourceQuotaScope{"BestEffort"} }, "spec.scopes", "unsupported scope applied to resource requests.cpu"},
		{"SC-16 scopes are about pods", func(q *rq) { q.Spec.Hard["services"] = resource.MustParse("1") }, "spec.scopes", "unsupported scope applied to resource services"},
		{"scope that is about claims", func(q *rq) { q.Spec.Scopes = []corev1.ResourceQuotaScope{"VolumeAttributesClass"} }, "spec.scopes", "unsupported scope applied"},
		{"selector", expression(corev1.ScopedResourceSelectorRequirement{ScopeName: "x", Operator: "Exists"}), e0 + ".scopeName", "unsupported scope"},
		{"selector In", expression(corev1.ScopedResourceSelectorRequirement{ScopeName: "PriorityClass", Operator: "In"}), e0 + ".values", "at least one value"},
		{"selector Exists", expression(corev1.ScopedResourceSelectorRequirement{ScopeName: "PriorityClass", Operator: "Exists", Values: []string{"a"}}), e0 + ".values", "no value"},
		{"selector operator", expression(corev1.ScopedResourceSelectorRequirement{ScopeName: "Terminating", Operator: "In", Values: []string{"a"}}), e0 + ".operator", "must be 'Exist'"},
	})
	checkUpdate(t, good, ValidateResourceQuotaUpdate, nil, []row[rq]{
		{"hard", func(q *rq) { q.Spec.Hard["pods"] = resource.MustParse("1") }, "", ""},
		{"scopes", func(q *rq) { q.Spec.Scopes = nil }, "spec.scopes", "immutable"},
	})
	checkUpdate(t, good, ValidateResourceQuotaStatusUpdate, nil, []row[rq]{
		{"used", func(q *rq) { q.Status.Used = corev1.ResourceList{"pods": resource.MustParse("1")} }, "", ""},
	})
}
