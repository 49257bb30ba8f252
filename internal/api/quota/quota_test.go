// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func using(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func cpu(name, request, limit string) corev1.Container {
	return using(name, list("cpu", request), list("cpu", limit))
}

func sidecar(c corev1.Container) corev1.Container {
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	return c
}

func podOf(inits []corev1.Container, mains ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{InitContainers: inits, Containers: mains}}
}

func item(p *corev1.Pod) Item { return Item{Resource: corev1.Resource("pods"), Object: p} }

func with(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(p)
	return p
}

// upToDate is a quota of which something is used.
func upToDate(hard, used corev1.ResourceList) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q"},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
		Status:     corev1.ResourceQuotaStatus{Hard: hard, Used: used},
	}
}

// SC-16: what objects take of a quota together.
func TestCount(t *testing.T) {
	small := cpu("main", "1", "2")
	for _, row := range []struct {
		name  string
		items []Item
		want  corev1.ResourceList
	}{
		{"nothing is zero of everything", nil, list("requests.cpu", "0", "limits.cpu", "0", "pods", "0", "count/pods", "0", "configmaps", "0")},
		{"SC-16 sidecars add to mains", []Item{item(podOf([]corev1.Container{sidecar(cpu("s", "500m", "1"))}, small))},
			list("requests.cpu", "1500m", "limits.cpu", "3", "pods", "1", "count/pods", "1", "configmaps", "0")},
		{"SC-16 ordinary inits count by the largest", []Item{item(podOf([]corev1.Container{cpu("i", "500m", "1"), cpu("j", "1500m", "2500m")}, small))},
			list("requests.cpu", "1500m", "limits.cpu", "2500m", "pods", "1", "count/pods", "1", "configmaps", "0")},
		{"SC-16 an init beside a sidecar", []Item{item(podOf([]corev1.Container{sidecar(cpu("s", "500m", "1")), cpu("i", "1500m", "2500m")}, small))},
			list("requests.cpu", "2", "limits.cpu", "3500m", "pods", "1", "count/pods", "1", "configmaps", "0")},
		{"a pod that ended keeps its place in count/pods alone", []Item{
			item(podOf(nil, small)),
			item(with(podOf(nil, small), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })),
			item(with(podOf(nil, small), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })),
			{Resource: corev1.Resource("configmaps"), Object: &corev1.ConfigMap{}},
			{Resource: corev1.Resource("secrets"), Object: &corev1.Secret{}},
		}, list("requests.cpu", "1", "limits.cpu", "2", "pods", "1", "count/pods", "3", "configmaps", "1")},
	} {
		t.Run(row.name, func(t *testing.T) {
			q := upToDate(list("requests.cpu", "9", "limits.cpu", "9", "pods", "9", "count/pods", "9", "configmaps", "9"), nil)
			if got := Count(q, row.items); !Same(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

// SC-16: what one object takes, a pod with its sidecars as it is scheduled.
func TestUsage(t *testing.T) {
	pod := podOf(nil, using("main", list("cpu", "1", "memory", "1Mi", "ephemeral-storage", "1Gi", "example.com/disk", "2"), list("example.com/disk", "2")))
	got := Usage(item(pod))
	for name, want := range list("cpu", "1", "requests.cpu", "1", "memory", "1Mi", "requests.memory", "1Mi", "ephemeral-storage", "1Gi",
		"requests.ephemeral-storage", "1Gi", "requests.example.com/disk", "2", "pods", "1", "count/pods", "1") {
		if q := got[name]; q.Cmp(want) != 0 {
			t.Errorf("%s: %s, want %s", name, q.String(), want.String())
		}
		if !Tracks(corev1.Resource("pods"), name) {
			t.Errorf("%s is not tracked", name)
		}
	}
	svc := Usage(Item{Resource: corev1.Resource("services"), Object: &corev1.Service{Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: make([]corev1.ServicePort, 2)}}})
	delete(svc, StoredBytes)
	if !Same(svc, list("count/services", "1", "services", "1", "services.nodeports", "2")) {
		t.Errorf("service: %v", svc)
	}
	if Tracks(corev1.Resource("pods"), "requests.storage") || Tracks(corev1.Resource("pods"), "count/podsets") || Tracks(corev1.Resource("secrets"), "configmaps") {
		t.Error("tracks what it does not count")
	}
}

// SC-16: what fits into a quota, and what is said when it does not.
func TestCharge(t *testing.T) {
	small := cpu("main", "1", "1")
	for _, row := range []struct {
		name       string
		hard, used corev1.ResourceList
		pod        *corev1.Pod
		want       string // the error; "": none
	}{
		{"just fits", list("pods", "2", "requests.cpu", "2"), list("pods", "1", "requests.cpu", "1"), podOf(nil, small), ""},
		{"SC-16 exceeded by its sidecar", list("pods", "2", "requests.cpu", "2"), list("pods", "1", "requests.cpu", "1"), podOf([]corev1.Container{sidecar(cpu("s", "100m", "100m"))}, small),
			"exceeded quota: q, requested: requests.cpu=1100m, used: requests.cpu=1, limited: requests.cpu=2"},
		{"SC-16 not by an init of that size", list("pods", "2", "requests.cpu", "2"), list("pods", "1", "requests.cpu", "1"), podOf([]corev1.Container{cpu("i", "100m", "100m")}, small), ""},
		{"several", list("pods", "1", "limits.cpu", "1"), list("pods", "1", "limits.cpu", "1"), podOf(nil, small),
			"exceeded quota: q, requested: limits.cpu=1,pods=1, used: limits.cpu=1,pods=1, limited: limits.cpu=1,pods=1"},
		{"what it does not take may be exceeded", list("pods", "2", "configmaps", "1"), list("pods", "1", "configmaps", "5"), podOf(nil, small), ""},
		{"SC-16 a sidecar must say what it takes", list("requests.cpu", "9", "limits.memory", "1Gi"), list("requests.cpu", "0", "limits.memory", "0"), podOf([]corev1.Container{sidecar(using("s", nil, nil))}, small),
			"failed quota: q: must specify limits.memory for: s,main; requests.cpu for: s"},
		{"unless the pod does", list("cpu", "9"), list("cpu", "0"), with(podOf(nil, using("main", nil, nil)), func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "1")}
		}), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Charge(upToDate(row.hard, row.used), item(row.pod))
			if got := ""; err != nil && err.Error() != row.want || err == nil && row.want != got {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
	used, err := Charge(upToDate(list("pods", "2", "cpu", "3"), list("pods", "1", "cpu", "1")), item(podOf([]corev1.Container{sidecar(cpu("s", "1", "1"))}, small)))
	if err != nil || !Same(used, list("pods", "2", "cpu", "3")) {
		t.Errorf("charged: %v, %v", used, err)
	}
}

// SC-16: a quota's status is relied on when it is that of its spec.
func TestSettled(t *testing.T) {
	q := upToDate(list("pods", "1"), list("pods", "0"))
	if !UpToDate(q) {
		t.Error("a counted quota")
	}
	q.Spec.Hard = list("pods", "2")
	if UpToDate(q) {
		t.Error("after its spec changed")
	}
	if UpToDate(upToDate(list("pods", "1"), nil)) {
		t.Error("uncounted")
	}
}

// SC-16: which pods a quota with scopes is about.
func TestScopes(t *testing.T) {
	plain := podOf(nil, using("main", nil, nil))
	burst := podOf([]corev1.Container{sidecar(cpu("s", "1", "2"))}, using("main", nil, nil))
	short := with(plain.DeepCopy(), func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(5)) })
	critical := with(plain.DeepCopy(), func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" })
	afar := with(plain.DeepCopy(), func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{PodAffinityTerm: corev1.PodAffinityTerm{Namespaces: []string{"other"}}}}}}
	})
	byClass := func(op corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: op, Values: values}}}}
	}
	scopes := func(s ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Scopes: s}
	}
	for _, row := range []struct {
		name string
		spec corev1.ResourceQuotaSpec
		in   *corev1.Pod
		not  *corev1.Pod
	}{
		{"SC-16 a sidecar that asks for something makes a pod no best effort", scopes(corev1.ResourceQuotaScopeBestEffort), plain, burst},
		{"SC-16 the other way round", scopes(corev1.ResourceQuotaScopeNotBestEffort), burst, plain},
		{"terminating", scopes(corev1.ResourceQuotaScopeTerminating), short, plain},
		{"not terminating", scopes(corev1.ResourceQuotaScopeNotTerminating), plain, short},
		{"both", scopes(corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeTerminating), short, plain},
		{"class in", byClass(corev1.ScopeSelectorOpIn, "system-node-critical"), critical, plain},
		{"class not in", byClass(corev1.ScopeSelectorOpNotIn, "system-node-critical"), plain, critical},
		{"a class", byClass(corev1.ScopeSelectorOpExists), critical, plain},
		{"no class", byClass(corev1.ScopeSelectorOpDoesNotExist), plain, critical},
		{"other namespaces", scopes(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), afar, plain},
	} {
		t.Run(row.name, func(t *testing.T) {
			q := &corev1.ResourceQuota{Spec: row.spec}
			if !Matches(q, item(row.in)) || Matches(q, item(row.not)) {
				t.Errorf("in: %v, not: %v", Matches(q, item(row.in)), Matches(q, item(row.not)))
			}
			if Matches(q, Item{Resource: corev1.Resource("secrets"), Object: &corev1.Secret{}}) {
				t.Error("a secret is in a scope of pods")
			}
		})
	}
}

// SC-16: which volume claims a quota of volume attributes classes is about, and that a change of class may not fit.
func TestClaimScopes(t *testing.T) {
	claim := func(wanted, has, target string) Item {
		c := &corev1.PersistentVolumeClaim{}
		if wanted != "" {
			c.Spec.VolumeAttributesClassName = &wanted
		}
		if has != "" {
			c.Status.CurrentVolumeAttributesClassName = &has
		}
		if target != "" {
			c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: target}
		}
		return Item{Resource: corev1.Resource("persistentvolumeclaims"), Object: c}
	}
	quota := func(op corev1.ScopeSelectorOperator, values ...string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: list("persistentvolumeclaims", "1"), ScopeSelector: &corev1.ScopeSelector{
			MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: op, Values: values}}}}}
	}
	gold, none, leaving, coming := claim("gold", "", ""), claim("", "", ""), claim("silver", "gold", ""), claim("silver", "silver", "gold")
	for _, row := range []struct {
		name    string
		q       *corev1.ResourceQuota
		in, not []Item
	}{
		{"in", quota(corev1.ScopeSelectorOpIn, "gold"), []Item{gold, leaving, coming}, []Item{none, claim("silver", "", "")}},
		{"not in", quota(corev1.ScopeSelectorOpNotIn, "gold"), []Item{none, claim("silver", "", "")}, []Item{gold}},
		{"any", quota(corev1.ScopeSelectorOpExists), []Item{gold, leaving}, []Item{none}},
		{"none", quota(corev1.ScopeSelectorOpDoesNotExist), []Item{none}, []Item{gold}},
	} {
		for _, i := range row.in {
			if !Matches(row.q, i) {
				t.Errorf("%s: %+v is not in it", row.name, i.Object)
			}
		}
		for _, i := range row.not {
			if Matches(row.q, i) {
				t.Errorf("%s: %+v is in it", row.name, i.Object)
			}
		}
		if Matches(row.q, item(podOf(nil, using("main", nil, nil)))) {
			t.Errorf("%s: a pod is in it", row.name)
		}
	}
	if !Grows(gold, claim("silver", "", "")) || Grows(gold, claim("gold", "gold", "")) {
		t.Error("a change of class is charged, and that it has happened is not")
	}
}

// SC-16: of a load balancer that allocates no node ports those count that it names.
func TestNamedNodePorts(t *testing.T) {
	s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(false),
		Ports: []corev1.ServicePort{{NodePort: 30080}, {}}}}
	used := Usage(Item{Resource: corev1.Resource("services"), Object: s})
	if got := used[corev1.ResourceServicesNodePorts]; got.Value() != 1 {
		t.Errorf("it takes %s node ports", got.String())
	}
}

// TestChange proves SC-16: an object that comes to take more is charged with the difference, and one that takes less with nothing.
func TestChange(t *testing.T) {
	service := func(kind corev1.ServiceType, ports int) Item {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: kind, Ports: make([]corev1.ServicePort, ports)}}
		return Item{Resource: corev1.Resource("services"), Object: s}
	}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: list("services", "1", "services.nodeports", "3", "services.loadbalancers", "0")}}
	q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: list("services", "1", "services.nodeports", "2", "services.loadbalancers", "0")}
	for _, row := range []struct {
		name     string
		old, now Item
		grows    bool
		ports    string // used then
		refuse   string
	}{
		{"nothing changes", service("NodePort", 2), service("NodePort", 2), false, "2", ""},
		{"one port more", service("NodePort", 2), service("NodePort", 3), true, "3", ""},
		{"two ports more", service("NodePort", 2), service("NodePort", 4), true, "", "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=2, limited: services.nodeports=3"},
		{"a port less", service("NodePort", 2), service("NodePort", 1), false, "2", ""},
		{"it becomes a load balancer", service("NodePort", 2), service("LoadBalancer", 2), true, "", "exceeded quota: q, requested: services.loadbalancers=1, used: services.loadbalancers=0, limited: services.loadbalancers=0"},
	} {
		if Grows(row.now, row.old) != row.grows {
			t.Errorf("%s: grows: %t", row.name, !row.grows)
		}
		used, err := Change(q, row.now, row.old)
		switch {
		case row.refuse != "":
			if err == nil || err.Error() != row.refuse {
				t.Errorf("%s: %v", row.name, err)
			}
		case err != nil || !Same(used, list("services", "1", "services.nodeports", row.ports, "services.loadbalancers", "0")):
			t.Errorf("%s: %v, %v", row.name, used, err)
		}
	}
}

// TestStoredBytes proves RS-03: a quota can limit what a namespace's objects take in the store, whatever their kind, ended pods too.
func TestStoredBytes(t *testing.T) {
	large := Item{Resource: corev1.Resource("configmaps"), Object: &corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("x", 10000)}}}
	small := Item{Resource: corev1.Resource("configmaps"), Object: &corev1.ConfigMap{}}
	q := upToDate(list("wherry.dev/stored-bytes", "15k"), list("wherry.dev/stored-bytes", "0"))
	used, err := Charge(q, large)
	if n := used[StoredBytes]; err != nil || n.Value() < 10000 || n.Value() > 10100 {
		t.Fatalf("%s, %v", n.String(), err)
	}
	q.Status.Used = used
	if _, err := Charge(q, large); err == nil || !strings.Contains(err.Error(), "exceeded quota: q, requested: wherry.dev/stored-bytes=") {
		t.Errorf("a second one: %v", err)
	}
	if !Grows(large, small) || Grows(small, large) {
		t.Error("what gets larger grows, and nothing else")
	}
	if _, err := Change(q, large, small); err == nil {
		t.Error("one grows beyond the quota")
	}
	ended := item(with(podOf(nil, cpu("main", "1", "1")), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }))
	if n := Usage(ended)[StoredBytes]; n.Value() == 0 {
		t.Error("a pod that has ended takes nothing")
	}
	if Tracks(corev1.Resource("resourcequotas"), StoredBytes) {
		t.Error("quotas count themselves, which changes them")
	}
}
