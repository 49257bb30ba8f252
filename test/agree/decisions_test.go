// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1convert "k8s.io/kubernetes/pkg/apis/core/v1"
	quotacore "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	rbacauthorizer "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/utils/clock"

	"github.com/wherryproject/wherry/internal/api/limitrange"
	"github.com/wherryproject/wherry/internal/api/quota"
	"github.com/wherryproject/wherry/internal/api/rbac"
)

// decide asks both sides AGREE_COUNT times and names the first answers that differ.
func decide(t *testing.T, ask func(c *chooser) (what, ours, theirs string)) {
	seed, count := number(t, "AGREE_SEED", usualSeed), number(t, "AGREE_COUNT", 10*usualCount)
	c := &chooser{rand.New(rand.NewPCG(uint64(seed), hash(t.Name()))), nil}
	answers, differ := map[string]int{}, 0
	for range count {
		what, ours, theirs := ask(c)
		answers[theirs]++
		if ours == theirs {
			continue
		}
		if differ++; differ <= 5 {
			t.Errorf("%s: ours %q, Kubernetes' %q", what, ours, theirs)
		}
	}
	t.Logf("%d of %d decisions agree; %d different answers", count-differ, count, len(answers))
	if len(answers) < 2 {
		t.Errorf("the answer is always %v: nothing was compared", answers)
	}
}

func one[T any](c *chooser, list ...T) T { return list[c.IntN(len(list))] }

func some[T any](c *chooser, list ...T) (chosen []T) {
	for range c.IntN(3) {
		chosen = append(chosen, one(c, list...))
	}
	return chosen
}

// A rule allows what Kubernetes' authoriser lets it allow.
func TestRightsAgree(t *testing.T) {
	decide(t, func(c *chooser) (string, string, string) {
		rule := &rbacv1.PolicyRule{Verbs: some(c, "get", "list", "*", "create"),
			APIGroups: some(c, "", "*", "apps"), Resources: some(c, "pods", "pods/log", "*", "*/log", "*/*", "pods/*",
				"nodes", "pods/"),
			ResourceNames:   some(c, "a", "b", "", "*"),
			NonResourceURLs: some(c, "/a", "/a*", "*", "/a/*", "/a**", "/*/b", "", "/")}
		r := &rbac.Request{User: "u", Verb: one(c, "get", "list", "*", ""), NonResource: c.IntN(3) == 0}
		if r.NonResource {
			r.Path = one(c, "/a", "/a/b", "/ab", "/", "/a*", "", "/x/b", "*")
		} else {
			r.Group, r.Resource = one(c, "", "apps", "*"), one(c, "pods", "nodes", "*")
			r.Subresource, r.Name = one(c, "", "log", "*"), one(c, "", "a", "b", "*")
		}
		a := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: r.User}, Verb: r.Verb, APIGroup: r.Group,
			Resource: r.Resource, Subresource: r.Subresource, Name: r.Name, ResourceRequest: !r.NonResource,
			Path: r.Path}
		return fmt.Sprintf("%+v asks %+v", rule, r), fmt.Sprint(rbac.Allows(rule, r)),
			fmt.Sprint(rbacauthorizer.RuleAllows(a, rule))
	})
}

// Whoever grants rights must have them, by Kubernetes' measure.
func TestEscalationAgrees(t *testing.T) {
	rules := func(c *chooser) (list []rbacv1.PolicyRule) {
		for range 1 + c.IntN(2) {
			list = append(list, rbacv1.PolicyRule{Verbs: some(c, "get", "list", "*"),
				APIGroups: some(c, "", "*", "apps"), Resources: some(c, "pods", "*", "*/log", "pods/log"),
				ResourceNames: some(c, "a", "b"), NonResourceURLs: some(c, "/a", "/a/*", "*")})
		}
		return list
	}
	decide(t, func(c *chooser) (string, string, string) {
		have, wanted := rules(c), rules(c)
		resolver, _ := validation.NewTestRuleResolver(nil, nil,
			[]*rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: have}},
			[]*rbacv1.ClusterRoleBinding{{Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName,
				Name: "u"}},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "r"}}})
		err := validation.ConfirmNoEscalation(asUser(t.Context(), "u"), resolver, wanted)
		return fmt.Sprintf("%v grants %v", have, wanted), fmt.Sprint(len(rbac.Missing(have, wanted)) == 0),
			fmt.Sprint(err == nil)
	})
}

// SC-16: a LimitRange fills in and refuses what it does in Kubernetes.
func TestLimitRangesAgree(t *testing.T) {
	t.Run("fills in", func(t *testing.T) {
		decide(t, func(c *chooser) (string, string, string) {
			pod, ranges := c.pod(), c.ranges(1)
			was, theirs := pod.DeepCopy(), internal(t, pod)
			limitrange.Apply(pod, ranges)
			if err := limitranger.PodMutateLimitFunc(&ranges[0], theirs); err != nil {
				t.Fatal(err)
			}
			return resources(was) + " in " + ranges[0].String(), resources(pod), resources(external(t, theirs))
		})
	})
	t.Run("refuses", func(t *testing.T) {
		decide(t, func(c *chooser) (string, string, string) {
			pod, ranges := c.pod(), c.ranges(1+c.IntN(2))
			var refused error
			for i := range ranges {
				if err := limitranger.PodValidateLimitFunc(&ranges[i], internal(t, pod)); err != nil {
					refused = err
				}
			}
			return fmt.Sprint(resources(pod), " in ", ranges, refused),
				fmt.Sprint(len(limitrange.Check(pod, ranges)) > 0), fmt.Sprint(refused != nil)
		})
	})
}

// SC-14: a pod takes of a quota what it takes in Kubernetes, and the same quotas are meant.
func TestQuotasAgree(t *testing.T) {
	t.Run("usage", func(t *testing.T) {
		decide(t, func(c *chooser) (string, string, string) {
			pod := c.pod()
			theirs, err := quotacore.PodUsageFunc(pod, clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			ours := quota.Usage(quota.Item{Resource: corev1.Resource("pods"), Object: pod})
			delete(ours, quota.StoredBytes)
			return resources(pod), amounts(ours), amounts(theirs)
		})
	})
	t.Run("scopes", func(t *testing.T) {
		evaluator := quotacore.NewPodEvaluator(nil, clock.RealClock{})
		decide(t, func(c *chooser) (string, string, string) {
			pod, q := c.pod(), c.quota()
			theirs, err := evaluator.Matches(q, pod)
			if err != nil {
				t.Fatal(err)
			}
			ours := quota.Matches(q, quota.Item{Resource: corev1.Resource("pods"), Object: pod})
			return fmt.Sprintf("%v %v of %+v", q.Spec.Scopes, q.Spec.ScopeSelector, pod.Spec), fmt.Sprint(ours),
				fmt.Sprint(theirs)
		})
	})
}

func asUser(ctx context.Context, name string) context.Context {
	return request.WithUser(ctx, &user.DefaultInfo{Name: name})
}

func internal(t *testing.T, pod *corev1.Pod) *core.Pod {
	var in core.Pod
	if err := corev1convert.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), &in, nil); err != nil {
		t.Fatal(err)
	}
	return &in
}

func external(t *testing.T, pod *core.Pod) *corev1.Pod {
	var out corev1.Pod
	if err := corev1convert.Convert_core_Pod_To_v1_Pod(pod, &out, nil); err != nil {
		t.Fatal(err)
	}
	return &out
}

// resources are what the containers of a pod ask for, in words.
func resources(pod *corev1.Pod) string {
	var b strings.Builder
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		fmt.Fprintf(&b, "%s(%v) [%s] [%s]; ", c.Name, c.RestartPolicy != nil, amounts(c.Resources.Requests),
			amounts(c.Resources.Limits))
	}
	if r := pod.Spec.Resources; r != nil {
		fmt.Fprintf(&b, "pod [%s] [%s]", amounts(r.Requests), amounts(r.Limits))
	}
	fmt.Fprintf(&b, " overhead [%s] %s", amounts(pod.Spec.Overhead), pod.Status.Phase)
	return b.String()
}

// amounts are a list in words, equal if the numbers are.
func amounts(list corev1.ResourceList) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		fmt.Fprintf(&b, "%s=%d ", name, q.MilliValue())
	}
	return b.String()
}

func (c *chooser) list() corev1.ResourceList {
	list := corev1.ResourceList{}
	for range c.IntN(3) {
		list[one(c, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "example.com/gpu",
			"hugepages-2Mi")] =
			resource.MustParse(one(c, "0", "1", "2", "100m", "1500m", "1Mi", "3"))
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

func (c *chooser) container(name string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: c.list(), Limits: c.list()}}
}

func (c *chooser) pod() *corev1.Pod {
	pod := &corev1.Pod{}
	for i := range c.IntN(3) {
		init := c.container(fmt.Sprint("init-", i))
		if c.IntN(2) == 0 {
			init.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, init)
	}
	for i := range 1 + c.IntN(2) {
		pod.Spec.Containers = append(pod.Spec.Containers, c.container(fmt.Sprint("main-", i)))
	}
	if c.IntN(4) == 0 {
		pod.Spec.Overhead = c.list()
	}
	if c.IntN(4) == 0 {
		pod.Spec.ActiveDeadlineSeconds = new(int64(c.IntN(2)))
	}
	pod.Spec.PriorityClassName = one(c, "", "", "high", "low")
	pod.Status.Phase = one(c, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed)
	if c.IntN(4) == 0 {
		term := corev1.PodAffinityTerm{TopologyKey: "k", Namespaces: some(c, "x")}
		if c.IntN(2) == 0 {
			term.NamespaceSelector = &metav1.LabelSelector{}
		}
		pod.Spec.Affinity = &corev1.Affinity{}
		switch c.IntN(3) {
		case 0:
			pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
		case 1:
			pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: term}}}
		}
	}
	return pod
}

func (c *chooser) ranges(n int) (list []corev1.LimitRange) {
	for range n {
		item := corev1.LimitRangeItem{Type: one(c, corev1.LimitTypeContainer, corev1.LimitTypePod,
			corev1.LimitTypePersistentVolumeClaim),
			Min: c.list(), Max: c.list(), MaxLimitRequestRatio: c.list()}
		if item.Type == corev1.LimitTypeContainer {
			item.Default, item.DefaultRequest = c.list(), c.list()
		}
		list = append(list, corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}})
	}
	return list
}

func (c *chooser) quota() *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{one(c, corev1.ResourcePods,
		"count/pods", corev1.ResourceCPU): resource.MustParse("1")}}}
	scopes := []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
		corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity}
	q.Status.Hard = q.Spec.Hard // which Kubernetes goes by
	q.Spec.Scopes = some(c, scopes...)
	if c.IntN(2) == 0 {
		return q
	}
	r := corev1.ScopedResourceSelectorRequirement{ScopeName: one(c, scopes...), Operator: corev1.ScopeSelectorOpExists}
	if r.ScopeName == corev1.ResourceQuotaScopePriorityClass {
		r.Operator = one(c, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist, corev1.ScopeSelectorOpIn,
			corev1.ScopeSelectorOpNotIn)
		if r.Operator == corev1.ScopeSelectorOpIn || r.Operator == corev1.ScopeSelectorOpNotIn {
			r.Values = []string{one(c, "high", "low")}
		}
	}
	q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{r}}
	return q
}
