// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/rand"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api"
)

func newQuota(t *testing.T, c kubernetes.Interface, ns string, spec corev1.ResourceQuotaSpec) {
	t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: spec}
	if _, err := c.CoreV1().ResourceQuotas(ns).Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func hard(pairs ...string) corev1.ResourceQuotaSpec {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return corev1.ResourceQuotaSpec{Hard: list}
}

// waitUsed returns when the quota says that this much is used, of what it limits now.
func waitUsed(t *testing.T, c kubernetes.Interface, ns string, pairs ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w,
		err := c.CoreV1().ResourceQuotas(ns).Watch(ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "q").String()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var last *corev1.ResourceQuota
	for e := range w.ResultChan() {
		q, ok := e.Object.(*corev1.ResourceQuota)
		if !ok {
			t.Fatalf("watch: %v", e.Object)
		}
		last = q
		same := len(q.Status.Hard) == len(q.Spec.Hard)
		for name, want := range hard(pairs...).Hard {
			have, ok := q.Status.Used[name]
			same = same && ok && have.Cmp(want) == 0
		}
		if same {
			return
		}
	}
	t.Fatalf("waited in vain for %v, have %+v", pairs, last)
}

func kill(t *testing.T, c kubernetes.Interface, ns, name string) {
	t.Helper()
	if err := c.CoreV1().Pods(ns).Delete(t.Context(), name,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
}

// TestQuota: SC-16, through the API.
func TestQuota(t *testing.T) {
	c := client(t)
	create := func(ns string, p *corev1.Pod) error {
		_, err := c.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
		return err
	}
	t.Run("SC-16 a sidecar exceeds it", func(t *testing.T) {
		ns := namespace(t, c)
		newQuota(t, c, ns, hard("requests.cpu", "2", "pods", "9"))
		createPod(t, c, ns, podWith("a", "500m", "500m"))
		waitUsed(t, c, ns, "requests.cpu", "1", "pods", "1")
		refusedFor(t, create(ns, podWith("b", "1", "100m")),
			`pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=1100m, used: requests.cpu=1, limited: requests.cpu=2`)
		waitUsed(t, c, ns, "requests.cpu", "1", "pods", "1")
		init := podWith("c", "1", "100m")
		init.Spec.InitContainers[0].RestartPolicy = nil
		createPod(t, c, ns, init)
		waitUsed(t, c, ns, "requests.cpu", "2", "pods", "2")
	})
	t.Run("SC-16 a sidecar must say what it takes", func(t *testing.T) {
		ns := namespace(t, c)
		newQuota(t, c, ns, hard("limits.cpu", "2"))
		p := podWith("p", "1", "1")
		p.Spec.InitContainers[0].Resources = corev1.ResourceRequirements{}
		refusedFor(t, create(ns, p), "failed quota: q: must specify limits.cpu for: proxy")
		limit(t, c, ns, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: cpus("1")})
		createPod(t, c, ns, p)
		waitUsed(t, c, ns, "limits.cpu", "2")
	})
	t.Run("SC-16 it is released when a pod goes or ends", func(t *testing.T) {
		ns := namespace(t, c)
		newQuota(t, c, ns, hard("limits.cpu", "2", "count/pods", "3"))
		createPod(t, c, ns, podWith("a", "1", "1"))
		kill(t, c, ns, "a")
		createPod(t, c, ns, podWith("b", "1", "1")) // whether or not it has been counted meanwhile
		kill(t, c, ns, "b")
		waitUsed(t, c, ns, "limits.cpu", "0", "count/pods", "0")
		got := createPod(t, c, ns, podWith("c", "1", "1"))
		got.Status.Phase = corev1.PodSucceeded
		if _, err := c.CoreV1().Pods(ns).UpdateStatus(t.Context(), got, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		waitUsed(t, c, ns, "limits.cpu", "0", "count/pods", "1")
		createPod(t, c, ns, podWith("d", "1", "1"))
	})
	t.Run("SC-16 it follows its spec", func(t *testing.T) {
		ns := namespace(t, c)
		createPod(t, c, ns, podWith("before", "1", "1"))
		newQuota(t, c, ns, hard("pods", "1"))
		waitUsed(t, c, ns, "pods", "1")
		refusedFor(t, create(ns, podWith("a", "1", "")),
			"exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1")
		patch := []byte(`{"spec":{"hard":{"pods":"2","cpu":"3"}}}`)
		if _, err := c.CoreV1().ResourceQuotas(ns).Patch(t.Context(), "q", "application/merge-patch+json", patch,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		createPod(t, c, ns, podWith("a", "1", ""))
		waitUsed(t, c, ns, "pods", "2", "cpu", "3")
	})
	t.Run("what is not created is not charged", func(t *testing.T) {
		ns := namespace(t, c)
		newQuota(t, c, ns, hard("pods", "2"))
		createPod(t, c, ns, podWith("a", "1", ""))
		if _, err := c.CoreV1().Pods(ns).Create(t.Context(), podWith("b", "1", ""),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Error(err)
		}
		waitUsed(t, c, ns, "pods", "1")
		if err := create(ns, podWith("a", "1", "")); !apierrors.IsAlreadyExists(err) {
			t.Errorf("twice: %v", err)
		}
		waitUsed(t, c, ns, "pods", "1")
	})
	t.Run("SC-16 claims of a class of volume attributes are counted, and are no more when they leave it",
		func(t *testing.T) {
			ns := namespace(t, c)
			spec := hard("persistentvolumeclaims", "1")
			spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: corev1.ScopeSelectorOpIn,
					Values: []string{"gold"}}}}
			newQuota(t, c, ns, spec)
			claims := c.CoreV1().PersistentVolumeClaims(ns)
			claim := func(name, class string) (*corev1.PersistentVolumeClaim, error) {
				made,
					err := claims.Create(t.Context(),
					&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name},
						Spec: corev1.PersistentVolumeClaimSpec{
							AccessModes:               []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
							VolumeAttributesClassName: &class,
							Resources:                 corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Mi")}}}}, metav1.CreateOptions{})
				if err != nil {
					return nil, err
				}
				made.Status.Phase = corev1.ClaimBound // others keep their class
				return claims.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
			}
			first, err := claim("first", "gold")
			if err != nil {
				t.Fatal(err)
			}
			waitUsed(t, c, ns, "persistentvolumeclaims", "1")
			_, err = claim("second", "gold")
			refusedFor(t, err, "exceeded quota: q, requested: persistentvolumeclaims=1")
			second, err := claim("second", "silver")
			if err != nil {
				t.Fatal(err)
			}
			second.Spec.VolumeAttributesClassName = new("gold")
			_, err = claims.Update(t.Context(), second, metav1.UpdateOptions{})
			refusedFor(t, err, "exceeded quota: q, requested: persistentvolumeclaims=1")
			first.Spec.VolumeAttributesClassName = new("silver")
			if _, err := claims.Update(t.Context(), first, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			waitUsed(t, c, ns, "persistentvolumeclaims", "0")
		})
	t.Run("objects are counted", func(t *testing.T) {
		ns := namespace(t, c)
		newQuota(t, c, ns, hard("configmaps", "1", "count/secrets", "1"))
		cms, secrets := c.CoreV1().ConfigMaps(ns), c.CoreV1().Secrets(ns)
		if _, err := cms.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := secrets.Apply(t.Context(), applycorev1.Secret("a", ns),
			metav1.ApplyOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
		waitUsed(t, c, ns, "configmaps", "1", "count/secrets", "1")
		_, err := cms.Apply(t.Context(), applycorev1.ConfigMap("b", ns), metav1.ApplyOptions{FieldManager: "test"})
		refusedFor(t, err, "exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1")
		_, err = secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
			metav1.CreateOptions{})
		refusedFor(t, err, "exceeded quota: q, requested: count/secrets=1")
		if _, err := cms.Apply(t.Context(), applycorev1.ConfigMap("a", ns).WithData(map[string]string{"k": "v"}),
			metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			t.Errorf("changing what is there: %v", err)
		}
	})
	t.Run("scopes", func(t *testing.T) {
		ns := namespace(t, c)
		spec := hard("pods", "0")
		spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
		newQuota(t, c, ns, spec)
		refusedFor(t, create(ns, pod("besteffort")), "exceeded quota")
		asks := podWith("burstable", "1", "1")
		asks.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		createPod(t, c, ns, asks)
	})
}

// TestQuotaRace: SC-16, pods created at the same time, among deletions and changes of the quota itself, never exceed
// it.
func TestQuotaRace(t *testing.T) {
	c := client(t)
	for _, way := range []struct {
		name string
		make func(ns, name string) error
	}{
		{"SC-16 created", func(ns, name string) error {
			_, err := c.CoreV1().Pods(ns).Create(t.Context(), podWith(name, "1", "1"), metav1.CreateOptions{})
			return err
		}},
		{"SC-16 applied", func(ns, name string) error {
			_, err := c.CoreV1().Pods(ns).Apply(t.Context(), applycorev1.Pod(name, ns).WithSpec(applycorev1.PodSpec().
				WithContainers(applycorev1.Container().WithName("main").WithImage("registry.example/app:1"))),
				metav1.ApplyOptions{FieldManager: "test"})
			return err
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			ns := namespace(t, c)
			newQuota(t, c, ns, hard("pods", "5"))
			for i := range 3 { // which go while the others come
				if err := way.make(ns, fmt.Sprint("old-", i)); err != nil {
					t.Fatal(err)
				}
			}
			var made atomic.Int32
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					switch err := way.make(ns, fmt.Sprint("new-", i)); {
					case err == nil:
						made.Add(1)
					case !apierrors.IsForbidden(err):
						t.Error(err)
					}
				})
			}
			for i := range 3 {
				all.Go(func() { kill(t, c, ns, fmt.Sprint("old-", i)) })
				all.Go(func() {
					patch := fmt.Appendf(nil, `{"metadata":{"labels":{"touched-%d":"yes"}}}`, i)
					if _, err := c.CoreV1().ResourceQuotas(ns).Patch(t.Context(), "q", "application/merge-patch+json",
						patch, metav1.PatchOptions{}); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for i := range 5 { // the deletions are over: now there is room for exactly five
				if err := way.make(ns, fmt.Sprint("last-", i)); err == nil {
					made.Add(1)
				} else {
					refusedFor(t, err, "exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5")
				}
			}
			if n := made.Load(); n != 5 {
				t.Errorf("%d pods where 5 may be", n)
			}
			waitUsed(t, c, ns, "pods", "5")
		})
	}
}

// TestQuotaRestart: SC-16, a server that was killed between a charge and its object puts the count right, and knows who
// has limits.
func TestQuotaRestart(t *testing.T) {
	config := api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1", EtcdServers: []string{shared.etcd.Endpoint()},
		EtcdPrefix: "/quota-restart"}
	s, stop := serve(t, config)
	c := clientOf(t, configOf(t, s))
	ns := namespace(t, c)
	limit(t, c, ns, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: cpus("1")})
	newQuota(t, c, ns, hard("pods", "2", "limits.cpu", "4"))
	createPod(t, c, ns, podWith("a", "1", "1"))
	waitUsed(t, c, ns, "pods", "1", "limits.cpu", "2")
	q, err := c.CoreV1().ResourceQuotas(ns).Get(t.Context(), "q", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q.Status.Used = hard("pods", "2", "limits.cpu", "4").Hard
	if _, err := c.CoreV1().ResourceQuotas(ns).UpdateStatus(t.Context(), q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	stop()

	s, stop = serve(t, config)
	defer stop()
	c = clientOf(t, configOf(t, s))
	waitUsed(t, c, ns, "pods", "1", "limits.cpu", "2")
	p := podWith("b", "1", "1")
	p.Spec.InitContainers[0].Resources = corev1.ResourceRequirements{}
	createPod(t, c, ns, p)
	waitUsed(t, c, ns, "pods", "2", "limits.cpu", "4")
}

// TestQuotaNewNamespace: SC-16, in a namespace that is as new as its quota a pod is made at the first try, created or
// applied: it waits for the default account, whose creation the quota counts too.
func TestQuotaNewNamespace(t *testing.T) {
	c := client(t)
	for way, create := range map[string]func(ns string) error{
		"created": func(ns string) error {
			_, err := c.CoreV1().Pods(ns).Create(t.Context(), podWith("p", "1", ""), metav1.CreateOptions{})
			return err
		},
		"applied": func(ns string) error {
			_, err := c.CoreV1().Pods(ns).Apply(t.Context(), applycorev1.Pod("p", ns).WithSpec(applycorev1.PodSpec().
				WithContainers(applycorev1.Container().WithName("main").WithImage("registry.example/app:1"))),
				metav1.ApplyOptions{FieldManager: "test"})
			return err
		},
	} {
		t.Run("SC-16 "+way, func(t *testing.T) {
			ns := "new-" + way + "-" + rand.String(5)
			if _, err := c.CoreV1().Namespaces().Create(t.Context(),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			newQuota(t, c, ns, hard("pods", "1", "count/serviceaccounts", "1"))
			made := make(chan error, 1)
			go func() { made <- create(ns) }()
			if _, err := c.CoreV1().ServiceAccounts(ns).Create(t.Context(),
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := <-made; err != nil {
				t.Fatal(err)
			}
			waitUsed(t, c, ns, "pods", "1", "count/serviceaccounts", "1")
		})
	}
}

// TestQuotaGrows: SC-16, a service that comes to take more is held to the quota as a new one.
func TestQuotaGrows(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	newQuota(t, c, ns, hard("services", "1", "services.nodeports", "1", "services.loadbalancers", "0"))
	if _, err := c.CoreV1().Services(ns).Create(t.Context(), service("s"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitUsed(t, c, ns, "services", "1", "services.nodeports", "0")
	patch := func(to string) error {
		change := `{"spec":{"type":"` + to + `"}}`
		if to == "ClusterIP" {
			change = `{"spec":{"type":"ClusterIP","externalTrafficPolicy":null,"ports":[{"port":80}]}}`
		}
		_, err := c.CoreV1().Services(ns).Patch(t.Context(), "s", "application/merge-patch+json", []byte(change),
			metav1.PatchOptions{})
		return err
	}
	refusedFor(t, patch("LoadBalancer"),
		"exceeded quota: q, requested: services.loadbalancers=1, used: services.loadbalancers=0, limited: services.loadbalancers=0")
	if err := patch("NodePort"); err != nil {
		t.Fatal(err)
	}
	waitUsed(t, c, ns, "services", "1", "services.nodeports", "1")
	if err := patch("ClusterIP"); err != nil {
		t.Fatal(err)
	}
	waitUsed(t, c, ns, "services", "1", "services.nodeports", "0")
}

// TestQuotaScopes: SC-16, what a quota with scopes counts.
func TestQuotaScopes(t *testing.T) {
	c := client(t)
	in := func(scope corev1.ResourceQuotaScope, op corev1.ScopeSelectorOperator,
		values ...string) *corev1.ScopeSelector {
		return &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: scope,
			Operator: op, Values: values}}}
	}
	deadline := func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }
	asks := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = cpus("1m") }
	critical := func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }
	for _, row := range []struct {
		scope  corev1.ResourceQuotaScope
		by     *corev1.ScopeSelector
		inside func(*corev1.Pod)
		beyond func(*corev1.Pod)
	}{
		{corev1.ResourceQuotaScopeTerminating, nil, deadline, nil},
		{corev1.ResourceQuotaScopeNotTerminating, nil, nil, deadline},
		{corev1.ResourceQuotaScopeBestEffort, nil, nil, asks},
		{corev1.ResourceQuotaScopeNotBestEffort, nil, asks, nil},
		{corev1.ResourceQuotaScopePriorityClass, nil, critical, nil},
		{"", in(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "system-node-critical"), critical,
			nil},
		{"", in(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpNotIn, "system-node-critical"), nil,
			critical},
		{"", in(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpDoesNotExist), nil, critical},
		{"", in(corev1.ResourceQuotaScopeTerminating, corev1.ScopeSelectorOpExists), deadline, nil},
	} {
		t.Run(fmt.Sprint("SC-16 ", row.scope, row.by), func(t *testing.T) {
			ns := "scoped-" + rand.String(6)
			if _, err := c.CoreV1().Namespaces().Create(t.Context(),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.CoreV1().ServiceAccounts(ns).Create(t.Context(),
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			spec := hard("pods", "1")
			spec.ScopeSelector = row.by
			if row.scope != "" {
				spec.Scopes = []corev1.ResourceQuotaScope{row.scope}
			}
			newQuota(t, c, ns, spec)
			create := func(name string, change func(*corev1.Pod)) error {
				p := pod(name)
				if change != nil {
					change(p)
				}
				_, err := c.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
				return err
			}
			for i := range 2 { // beyond the scope there is no limit
				if err := create(fmt.Sprint("beyond-", i), row.beyond); err != nil {
					t.Fatal(err)
				}
			}
			if err := create("inside", row.inside); err != nil {
				t.Fatal(err)
			}
			refusedFor(t, create("one-more", row.inside),
				"exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1")
		})
	}
}

// TestQuotaOfBytes proves RS-03: a namespace is held to what its objects may take in the store: new ones, those that
// grow, and as many as are made at once; what is deleted can be taken again.
func TestQuotaOfBytes(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	newQuota(t, c, ns, hard("wherry.dev/stored-bytes", "1Mi"))
	maps := c.CoreV1().ConfigMaps(ns)
	var made atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := maps.Create(t.Context(), sized(fmt.Sprint("m", i), 300_000),
				metav1.CreateOptions{}); err == nil {
				made.Add(1)
			} else if !apierrors.IsForbidden(err) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made.Load() != 3 {
		t.Errorf("%d of 300 kB fit into 1 MiB", made.Load())
	}
	small, err := maps.Create(t.Context(), sized("small", 1000), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	grown := sized("small", 300_000)
	grown.ResourceVersion = small.ResourceVersion
	if _, err := maps.Update(t.Context(), grown, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("one that grows: %v", err)
	}
	if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{FieldSelector: "metadata.name!=small"}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Update(t.Context(), grown, metav1.UpdateOptions{}); err != nil {
		t.Errorf("after the others were deleted: %v", err)
	}
}

// RS-03, ATTACK B20: leases count too: nothing else bounds what a user keeps in them. A node's go through.
func TestQuotaOfLeases(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	newQuota(t, c, ns, hard("wherry.dev/stored-bytes", "100Ki", "count/leases.coordination.k8s.io", "1"))
	large := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "large",
		Annotations: map[string]string{"a": strings.Repeat("x", 200_000)}}}
	if _, err := c.CoordinationV1().Leases(ns).Create(t.Context(), large,
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a lease of 200 kB: %v", err)
	}
	small := func(name string) error {
		_, err := c.CoordinationV1().Leases(ns).Create(t.Context(),
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	if err := small("one"); err != nil {
		t.Error(err)
	}
	refusedFor(t, small("two"),
		"exceeded quota: q, requested: count/leases.coordination.k8s.io=1, used: count/leases.coordination.k8s.io=1")
}

// RS-05 (ATTACK A34): an image exec in a pod that has ended takes what the pod took while it ran, as long as it lasts;
// in one that runs it takes nothing.
func TestQuotaOfImageExecs(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	big := func(name string) *corev1.Pod {
		p := pod(name)
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
		return p
	}
	ended := n.pod(t, ns, big("ended"))
	n.status(t, ended, func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed })
	n.pod(t, ns, big("runs"))
	newQuota(t, c, ns, hard("pods", "2", "limits.memory", "128Mi"))
	waitUsed(t, c, ns, "pods", "1", "limits.memory", "64Mi")

	inside, over := make(chan string, 10), make(chan struct{})
	var visitors sync.WaitGroup
	leave := sync.OnceFunc(func() {
		close(over)
		visitors.Wait()
	})
	t.Cleanup(leave)
	n.answer("imageExec", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "" { // a question whether the node can do it
			return
		}
		inside <- r.URL.Path
		<-over
	})
	visit := func(pod string) {
		visitors.Go(func() { _, _ = execInto(t, adminConfig(t), "spdy", ns, pod, "stdout=true&image=tools:1") })
		<-inside
	}
	visit("runs")
	visit("ended")
	waitUsed(t, c, ns, "pods", "2", "limits.memory", "128Mi")
	_, err := execInto(t, adminConfig(t), "websocket", ns, "ended", "stdout=true&image=tools:1")
	if s := statusOf(t, err); s.Code != 403 || !strings.Contains(s.Message,
		"takes what the pod took while it ran: exceeded quota: q, requested: limits.memory=64Mi,pods=1, used: limits.memory=128Mi,pods=2") {
		t.Errorf("one too many: %+v", s)
	}
	if _, err := c.CoreV1().Pods(ns).Create(t.Context(), big("late"),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a pod beside them: %v", err)
	}
	leave()
	waitUsed(t, c, ns, "pods", "1", "limits.memory", "64Mi")
}
