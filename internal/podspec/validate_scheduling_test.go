// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestValidateScheduling(t *testing.T) {
	tolerate := func(t corev1.Toleration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{t} }
	}
	spread := func(change func(*corev1.TopologySpreadConstraint)) func(*corev1.Pod) {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		}
		change(&c)
		return func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c} }
	}
	const s0 = "spec.topologySpreadConstraints[0]"
	checkSpoiled(t, []spoiled{
		{"nodeSelector key", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"a b": ""} }, "spec.nodeSelector", invalidErr, ""},
		{"nodeSelector value", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b c"} }, "spec.nodeSelector", invalidErr, ""},
		{"schedulerName", func(p *corev1.Pod) { p.Spec.SchedulerName = "" }, "spec.schedulerName", requiredErr, ""},
		{"priorityClassName", func(p *corev1.Pod) { p.Spec.PriorityClassName = "A" }, "spec.priorityClassName", invalidErr, ""},
		{"preemptionPolicy", func(p *corev1.Pod) { p.Spec.PreemptionPolicy = new(corev1.PreemptionPolicy("x")) }, "spec.preemptionPolicy", notSupportedErr, "PreemptLowerPriority"},
		{"runtimeClassName", func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("A") }, "spec.runtimeClassName", invalidErr, ""},
		{"schedulingGroup", func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{} }, "spec.schedulingGroup", requiredErr, ""},
		{"schedulingGroup name", func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("A")} }, "spec.schedulingGroup.podGroupName", invalidErr, ""},
		{"gate", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a b"}} }, "spec.schedulingGates[0]", invalidErr, ""},
		{"gates alike", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}, {Name: "a"}} }, "spec.schedulingGates[1]", duplicateErr, ""},

		{"toleration key", tolerate(corev1.Toleration{Key: "a b", Operator: "Exists"}), "spec.tolerations[0].key", invalidErr, ""},
		{"toleration of all but equal", tolerate(corev1.Toleration{Operator: "Equal", Value: "a"}), "spec.tolerations[0].operator", invalidErr, "operator must be Exists when `key` is empty"},
		{"toleration operator", tolerate(corev1.Toleration{Key: "a", Operator: "Like"}), "spec.tolerations[0].operator", notSupportedErr, `"Equal", "Exists"`},
		{"toleration value with Exists", tolerate(corev1.Toleration{Key: "a", Operator: "Exists", Value: "b"}), "spec.tolerations[0].operator", invalidErr, "value must be empty when `operator` is 'Exists'"},
		{"toleration value", tolerate(corev1.Toleration{Key: "a", Operator: "Equal", Value: "b c"}), "spec.tolerations[0].operator", invalidErr, ""},
		{"toleration number", tolerate(corev1.Toleration{Key: "a", Operator: "Gt", Value: "007"}), "spec.tolerations[0].value", invalidErr, "decimal integer"},
		{"toleration effect", tolerate(corev1.Toleration{Key: "a", Operator: "Exists", Effect: "x"}), "spec.tolerations[0].effect", notSupportedErr, "NoExecute"},
		{"toleration seconds", tolerate(corev1.Toleration{Key: "a", Operator: "Exists", TolerationSeconds: new(int64(1))}), "spec.tolerations[0].effect", invalidErr, "effect must be 'NoExecute'"},

		{"maxSkew", spread(func(c *corev1.TopologySpreadConstraint) { c.MaxSkew = 0 }), s0 + ".maxSkew", invalidErr, "must be greater than zero"},
		{"no topologyKey", spread(func(c *corev1.TopologySpreadConstraint) { c.TopologyKey = "" }), s0 + ".topologyKey", requiredErr, "can not be empty"},
		{"topologyKey", spread(func(c *corev1.TopologySpreadConstraint) { c.TopologyKey = "a b" }), s0 + ".topologyKey", invalidErr, ""},
		{"whenUnsatisfiable", spread(func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = "x" }), s0 + ".whenUnsatisfiable", notSupportedErr, "ScheduleAnyway"},
		{"minDomains", spread(func(c *corev1.TopologySpreadConstraint) { c.MinDomains = new(int32(0)) }), s0 + ".minDomains", invalidErr, "greater than zero"},
		{"minDomains and ScheduleAnyway", spread(func(c *corev1.TopologySpreadConstraint) {
			c.MinDomains, c.WhenUnsatisfiable = new(int32(1)), "ScheduleAnyway"
		}), s0 + ".minDomains", invalidErr, "can only use minDomains if whenUnsatisfiable=DoNotSchedule"},
		{"nodeAffinityPolicy", spread(func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = new(corev1.NodeInclusionPolicy("x")) }), s0 + ".nodeAffinityPolicy", notSupportedErr, "Honor"},
		{"nodeTaintsPolicy", spread(func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicy("x")) }), s0 + ".nodeTaintsPolicy", notSupportedErr, "Ignore"},
		{"spread selector", spread(func(c *corev1.TopologySpreadConstraint) { c.LabelSelector.MatchLabels = map[string]string{"a b": ""} }), s0 + ".labelSelector.matchLabels", invalidErr, ""},
		{"spread keys without selector", spread(func(c *corev1.TopologySpreadConstraint) { c.LabelSelector, c.MatchLabelKeys = nil, []string{"a"} }), s0 + ".matchLabelKeys", forbiddenErr, "labelSelector is not set"},
		{"spread key in selector", spread(func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"app"} }), s0 + ".matchLabelKeys[0]", invalidErr, "exists in both matchLabelKeys and labelSelector"},
		{"spread twice", func(p *corev1.Pod) {
			spread(func(*corev1.TopologySpreadConstraint) {})(p)
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, p.Spec.TopologySpreadConstraints[0])
		}, "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}", duplicateErr, ""},
	})
}

func TestValidateAffinity(t *testing.T) {
	const node = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	const pref = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
	const pod = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
	const anti = "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
	require := func(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
			}}
		}
	}
	expr := func(r corev1.NodeSelectorRequirement) func(*corev1.Pod) {
		return require(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}})
	}
	fieldOf := func(r corev1.NodeSelectorRequirement) func(*corev1.Pod) {
		return require(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{r}})
	}
	near := func(term corev1.PodAffinityTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		}
	}
	sel := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	checkSpoiled(t, []spoiled{
		{"no terms", require(), node, requiredErr, "must have at least one node selector term"},
		{"In without values", expr(corev1.NodeSelectorRequirement{Key: "a", Operator: "In"}), node + "[0].matchExpressions[0].values", requiredErr, "'In' or 'NotIn'"},
		{"Exists with values", expr(corev1.NodeSelectorRequirement{Key: "a", Operator: "Exists", Values: []string{"b"}}), node + "[0].matchExpressions[0].values", forbiddenErr, "may not be specified"},
		{"Gt with two values", expr(corev1.NodeSelectorRequirement{Key: "a", Operator: "Gt", Values: []string{"1", "2"}}), node + "[0].matchExpressions[0].values", requiredErr, "single value"},
		{"node operator", expr(corev1.NodeSelectorRequirement{Key: "a", Operator: "Like"}), node + "[0].matchExpressions[0].operator", invalidErr, "not a valid selector operator"},
		{"node key", expr(corev1.NodeSelectorRequirement{Key: "a b", Operator: "Exists"}), node + "[0].matchExpressions[0].key", invalidErr, ""},
		{"node value", expr(corev1.NodeSelectorRequirement{Key: "a", Operator: "In", Values: []string{"b c"}}), node + "[0].matchExpressions[0].values[0]", invalidErr, ""},
		{"node field", fieldOf(corev1.NodeSelectorRequirement{Key: "spec.x", Operator: "In", Values: []string{"b"}}), node + "[0].matchFields[0].key", invalidErr, "not a valid field selector key"},
		{"node field operator", fieldOf(corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: "Exists"}), node + "[0].matchFields[0].operator", invalidErr, ""},
		{"node field values", fieldOf(corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: "In"}), node + "[0].matchFields[0].values", requiredErr, "only one value"},
		{"node field value", fieldOf(corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: "In", Values: []string{"A B"}}), node + "[0].matchFields[0].values[0]", invalidErr, ""},
		{"node weight", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: make([]corev1.PreferredSchedulingTerm, 1)}}
		}, pref + ".weight", invalidErr, "must be in the range 1-100"},
		{"pod topologyKey", near(corev1.PodAffinityTerm{}), pod + ".topologyKey", requiredErr, "can not be empty"},
		{"pod selector", near(corev1.PodAffinityTerm{TopologyKey: "a", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}), pod + ".labelSelector.matchExpressions[0].operator", invalidErr, ""},
		{"pod namespace", near(corev1.PodAffinityTerm{TopologyKey: "a", Namespaces: []string{"A"}}), pod + ".namespaces[0]", invalidErr, ""},
		{"pod namespace selector", near(corev1.PodAffinityTerm{TopologyKey: "a", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}}), pod + ".namespaceSelector.matchLabels", invalidErr, ""},
		{"pod keys without selector", near(corev1.PodAffinityTerm{TopologyKey: "a", MatchLabelKeys: []string{"x"}}), pod + ".matchLabelKeys", forbiddenErr, ""},
		{"pod mismatch key in selector", near(corev1.PodAffinityTerm{TopologyKey: "a", LabelSelector: sel, MismatchLabelKeys: []string{"app"}}), pod + ".mismatchLabelKeys[0]", invalidErr, "labelSelector"},
		{"pod key in both", near(corev1.PodAffinityTerm{TopologyKey: "a", LabelSelector: sel, MatchLabelKeys: []string{"x"}, MismatchLabelKeys: []string{"x"}}), pod + ".mismatchLabelKeys[0]", invalidErr, "matchLabelKeys and mismatchLabelKeys"},
		{"pod weight", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 101}}}}
		}, anti + ".weight", invalidErr, "must be in the range 1-100"},
	})
}
