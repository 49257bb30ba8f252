// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func clusterObject(name string) metav1.ObjectMeta {
	m := object(name)
	m.Namespace = ""
	return m
}

// TestPriorityClass proves EC-21: names and values of the system are the system's, and what pods have got does not change.
func TestPriorityClass(t *testing.T) {
	type pc = schedulingv1.PriorityClass
	good := func() *pc {
		p := &pc{ObjectMeta: clusterObject("high"), Value: 1000000000}
		SetDefaultsPriorityClass(p)
		return p
	}
	if p := good().PreemptionPolicy; p == nil || *p != corev1.PreemptLowerPriority {
		t.Errorf("default policy %v", p)
	}
	check(t, good, ValidatePriorityClass, []row[pc]{
		{"name", func(p *pc) { p.Name = "A_b" }, "metadata.name", ""},
		{"too high", func(p *pc) { p.Value++ }, "value", "maximum allowed value of a user defined priority is 1000000000"},
		{"policy", func(p *pc) { p.PreemptionPolicy = new(corev1.PreemptionPolicy("Maybe")) }, "preemptionPolicy", "Unsupported"},
		{"a name of the system", func(p *pc) { p.Name = "system-mine" }, "metadata.name", "reserved for system use only"},
		{"a class of the system with another value", func(p *pc) { p.Name = "system-node-critical" }, "value", "the value of system-node-critical is 2000001000"},
	})
	for _, system := range SystemPriorityClasses() {
		system.UID = "u"
		if bad := ValidatePriorityClass(&system); len(bad) > 0 {
			t.Errorf("%s: %v", system.Name, bad)
		}
		system.GlobalDefault = true
		if bad := ValidatePriorityClass(&system); len(bad) != 1 || bad[0].Field != "globalDefault" {
			t.Errorf("%s as the default: %v", system.Name, bad)
		}
	}
	checkUpdate(t, good, ValidatePriorityClassUpdate, nil, []row[pc]{
		{"description", func(p *pc) { p.Description, p.GlobalDefault = "x", true }, "", ""},
		{"value", func(p *pc) { p.Value = 1 }, "value", "may not be changed in an update"},
		{"policy", func(p *pc) { p.PreemptionPolicy = new(corev1.PreemptNever) }, "preemptionPolicy", "immutable"},
	})
}

// TestRuntimeClass proves PL-15: a class says what a runtime can be asked for.
func TestRuntimeClass(t *testing.T) {
	type rc = nodev1.RuntimeClass
	tolerate := corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists}
	good := func() *rc {
		return &rc{ObjectMeta: clusterObject("boxed"), Handler: "runsc", Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{tolerate}}}
	}
	check(t, good, ValidateRuntimeClass, []row[rc]{
		{"no handler", func(c *rc) { c.Handler = "" }, "handler", "Required"},
		{"handler", func(c *rc) { c.Handler = "a.b" }, "handler", "must not contain dots"},
		{"overhead", func(c *rc) { c.Overhead.PodFixed["cpu"] = resource.MustParse("-1") }, "overhead.podFixed[cpu]", "greater than or equal to 0"},
		{"node selector", func(c *rc) { c.Scheduling.NodeSelector["a b"] = "" }, "scheduling.nodeSelector", ""},
		{"toleration", func(c *rc) { c.Scheduling.Tolerations[0].Value = "x" }, "scheduling.tolerations[0].operator", "must be empty"},
		{"tolerations alike", func(c *rc) { c.Scheduling.Tolerations = append(c.Scheduling.Tolerations, tolerate) }, "scheduling.tolerations[1]", "Duplicate"},
	})
	checkUpdate(t, good, ValidateRuntimeClassUpdate, nil, []row[rc]{
		{"overhead", func(c *rc) { c.Overhead = nil }, "", ""},
		{"handler", func(c *rc) { c.Handler = "other" }, "handler", "immutable"},
	})
}
