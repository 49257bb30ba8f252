// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/upstream"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// RS-03, ATTACK B22: whatever subresource an object is made larger by, the namespace's quota of stored bytes is
// charged. Every subresource that takes writes has a row here, or the reason why nothing grows by it.
func TestQuotaOfSubresources(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	newQuota(t, c, ns, hard("wherry.dev/stored-bytes", "80Ki"))
	bound := n.pod(t, ns, pod("bound"))
	createPod(t, c, ns, pod("pending"))
	balanced := service("s") // others have nothing in their status
	balanced.Spec.Type = corev1.ServiceTypeLoadBalancer
	if _, err := c.CoreV1().Services(ns).Create(t.Context(), balanced, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	much := strings.Repeat("x", 90_000)
	patch := func(resource, name, subresource, change string) error {
		return c.CoreV1().RESTClient().Patch(types.MergePatchType).Namespace(ns).Resource(resource).Name(name).SubResource(subresource).
			Body([]byte(change)).Do(t.Context()).Error()
	}
	debugContainer := fmt.Sprintf(`{"spec":{"ephemeralContainers":[{"name":"d","image":"tools:1","args":[%q]}]}}`, much)

	grown := map[string]func() error{
		"pods/status": func() error {
			return patch("pods", "bound", "status", fmt.Sprintf(`{"status":{"message":%q}}`, much))
		},
		"pods/ephemeralcontainers": func() error {
			return patch("pods", "bound", "ephemeralcontainers", debugContainer)
		},
		"pods/exec": func() error { // exec++
			query := "stdout=true&ephemeralContainerName=e&ephemeralContainerImage=tools:1" +
				strings.Repeat("&command="+much[:8000], 11)
			_, err := execInto(t, adminConfig(t), "websocket", ns, "bound", query)
			return err
		},
		"pods/binding": func() error {
			return c.CoreV1().Pods(ns).Bind(t.Context(), &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: "pending", Annotations: map[string]string{"a": much}},
				Target:     corev1.ObjectReference{Kind: "Node", Name: n.name},
			}, metav1.CreateOptions{})
		},
		"services/status": func() error {
			hosts := strings.Repeat(`{"hostname":"a`+strings.Repeat(".example", 30)+`"},`, 400)
			return patch("services", "s", "status", `{"status":{"loadBalancer":{"ingress":[`+
				strings.TrimSuffix(hosts, ",")+`]}}}`)
		},
	}
	deployments := func(subresource, change string) func() error {
		return func() error {
			_, err := c.AppsV1().Deployments(ns).Patch(t.Context(), "d", types.MergePatchType, []byte(change),
				metav1.PatchOptions{}, subresource)
			return err
		}
	}
	if _, err := c.AppsV1().Deployments(ns).Create(t.Context(), deployment("d"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	grown["deployments/status"] = deployments("status", fmt.Sprintf(
		`{"status":{"conditions":[{"type":"A","status":"True","message":%q}]}}`, much))
	// What the server itself writes, and what passes through without being stored.
	bounded := map[string]string{
		"resourcequotas/status":        "quotas are not counted: counting changes them",
		debugrun.Resource + "/status":  "only the server writes it",
		"pods/" + debugrun.Subresource: "reads records, and stops debug containers",
		"pods/eviction":                "a condition of fixed text, before the pod goes",
		"pods/resize":                  "amounts of CPU and memory, with which quotas of these are charged",
		"pods/attach":                  "stores nothing",
		"pods/portforward":             "stores nothing",
		"pods/proxy":                   "stores nothing",
		"services/proxy":               "stores nothing",
		"serviceaccounts/token":        "stores nothing",
		"localsubjectaccessreviews":    "stores nothing",
	}
	for _, subresource := range writable(t, c) {
		if of, name, _ := strings.Cut(subresource, "/"); name == "scale" || name == "status" && slices.ContainsFunc(
			upstream.Kinds(), func(k *registry.Kind) bool { return k.Plural == of }) {
			continue // a number; and all statuses of kinds with Kubernetes' rules go one way, as deployments/status
		}
		if grown[subresource] == nil && bounded[subresource] == "" {
			t.Errorf("%s takes writes, and nothing here tells whether quotas are charged with them", subresource)
		}
	}
	for name, grow := range grown {
		t.Run("RS-03 "+name, func(t *testing.T) {
			if err := grow(); err == nil || !strings.Contains(err.Error(),
				"exceeded quota: q, requested: wherry.dev/stored-bytes=") {
				t.Errorf("90 kB more: %.300v", err)
			}
		})
	}

	t.Run("RS-03 what fits is charged", func(t *testing.T) {
		fits := strings.Replace(debugContainer, much, much[:50_000], 1)
		if err := patch("pods", "bound", "ephemeralcontainers", fits); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), sized("c", 50_000),
			metav1.CreateOptions{}); err == nil {
			t.Error("twice 50 kB fit into 80 KiB")
		}
	})
	t.Run("RS-03 a node is not refused", func(t *testing.T) {
		config, err := shared.srv.As("system:node:"+n.name, "system:nodes")
		if err != nil {
			t.Fatal(err)
		}
		status := fmt.Sprintf(`{"status":{"message":%q}}`, much)
		if _, err := clientOf(t, config).CoreV1().Pods(ns).Patch(context.Background(), bound.Name,
			types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
			t.Errorf("what it reports: %.300v", err)
		}
	})
}

// writable lists the subresources in namespaces that take writes.
func writable(t *testing.T, c kubernetes.Interface) (all []string) {
	t.Helper()
	_, lists, err := c.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		if strings.Contains(list.GroupVersion, "example.com/") {
			continue // of another test's definition, which may just be going; TestQuotaOfCustomResources has its own
		}
		for _, r := range list.APIResources {
			writes := slices.ContainsFunc(r.Verbs,
				func(verb string) bool { return verb == "create" || verb == "update" || verb == "patch" })
			if r.Namespaced && writes && strings.Contains(r.Name, "/") {
				all = append(all, r.Name)
			}
		}
	}
	if len(all) < 5 {
		t.Fatalf("discovery tells of %v only", all)
	}
	return all
}
