// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// seen is a review in short: what it is about, and which kinds the objects in it say they are.
func seen(r reviewv1.AdmissionRequest) string {
	resource := r.Resource.Resource
	if r.SubResource != "" {
		resource += "/" + r.SubResource
	}
	return fmt.Sprintf("%s %s %s, object %s, old %s, options %s", r.Operation, resource, gvkText(r.Kind),
		kindIn(r.Object.Raw), kindIn(r.OldObject.Raw), kindIn(r.Options.Raw))
}

func gvkText(k metav1.GroupVersionKind) string {
	if k.Group == "" {
		return k.Version + "." + k.Kind
	}
	return k.Group + "/" + k.Version + "." + k.Kind
}

func kindIn(raw []byte) string {
	var m metav1.TypeMeta
	if err := json.Unmarshal(raw, &m); err != nil || string(raw) == "null" || len(raw) == 0 {
		return "none"
	}
	return m.APIVersion + "." + m.Kind
}

// EC-21 DC-03 IX-07: what webhooks are shown of every way to change a pod is what Kubernetes shows: operation, resource
// and subresource, kind, the objects in that kind's version, and the options of the request.
func TestWebhookSeesEveryWayToChangeAPod(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	pods := c.CoreV1().Pods(ns)
	for _, way := range []string{"mutating", "validating"} {
		w := newWebhook(t, nil)
		h := hook("all.example.com", w.client(), rule("*/*", "*"))
		h.Rules[0].Scope = ptr.To(admissionv1.NamespacedScope) // no selector of namespaces keeps it from nodes
		if way == "mutating" {
			mutate(t, c, ns, h)
		} else {
			validate(t, c, ns, h)
		}
		w.requests() // of the marker
		p := func(name string) string { return way + "-" + name }
		for _, tc := range []struct {
			what string
			do   func(t *testing.T) error
			want string // one of the reviews; the node's writes of the status may come in between
		}{
			{"create", func(t *testing.T) error {
				_, err := pods.Create(t.Context(), pod(p("a")), metav1.CreateOptions{})
				return err
			}, "CREATE pods v1.Pod, object v1.Pod, old none, options meta.k8s.io/v1.CreateOptions"},
			{"bind", func(t *testing.T) error {
				return bindPod(t, c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: p("a")}}, n.name)
			}, "CREATE pods/binding v1.Binding, object v1.Binding, old none, options meta.k8s.io/v1.CreateOptions"},
			{"patch", func(t *testing.T) error {
				_, err := pods.Patch(t.Context(), p("a"), types.MergePatchType,
					[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
				return err
			}, "UPDATE pods v1.Pod, object v1.Pod, old v1.Pod, options meta.k8s.io/v1.UpdateOptions"},
			{"server-side apply", func(t *testing.T) error {
				_, err := pods.Patch(t.Context(), p("applied"), types.ApplyPatchType, fmt.Appendf(nil,
					`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"containers":[{"name":"a","image":"x.example/a:1"}]}}`, p("applied")),
					metav1.PatchOptions{FieldManager: "test"})
				return err
			}, "CREATE pods v1.Pod, object v1.Pod, old none, options meta.k8s.io/v1.CreateOptions"},
			{"status", func(t *testing.T) error {
				n.status(t, podNow(t, c, ns, p("a")), func(s *corev1.PodStatus) {
					s.Phase = corev1.PodRunning
					s.ContainerStatuses = []corev1.ContainerStatus{{Name: "main",
						State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
				})
				return nil
			}, "UPDATE pods/status v1.Pod, object v1.Pod, old v1.Pod, options meta.k8s.io/v1.UpdateOptions"},
			{"ephemeral container", func(t *testing.T) error {
				now := podNow(t, c, ns, p("a"))
				now.Spec.EphemeralContainers = append(now.Spec.EphemeralContainers, corev1.EphemeralContainer{
					EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "tools:1"}})
				_, err := pods.UpdateEphemeralContainers(t.Context(), p("a"), now, metav1.UpdateOptions{})
				return err
			},
				"UPDATE pods/ephemeralcontainers v1.Pod, object v1.Pod, old v1.Pod, options meta.k8s.io/v1.UpdateOptions"},
			{"exec", func(t *testing.T) error {
				_, err := execInto(t, adminConfig(t), "websocket", ns, p("a"), "stdout=true&container=main&command=a")
				return err
			}, "CONNECT pods/exec v1.PodExecOptions, object v1.PodExecOptions, old none, options none"},
			{"attach", func(t *testing.T) error {
				_,
					_ = c.CoreV1().RESTClient().Get().Namespace(ns).Resource("pods").Name(p("a")).SubResource("attach").Param("container", "main").DoRaw(t.Context())
				return nil // no upgrade, no stream: the review comes before
			}, "CONNECT pods/attach v1.PodAttachOptions, object v1.PodAttachOptions, old none, options none"},
			{"port-forward", func(t *testing.T) error {
				_,
					_ = c.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").Name(p("a")).SubResource("portforward").DoRaw(t.Context())
				return nil
			},
				"CONNECT pods/portforward v1.PodPortForwardOptions, object v1.PodPortForwardOptions, old none, options none"},
			{"proxy", func(t *testing.T) error {
				_,
					_ = c.CoreV1().RESTClient().Get().Namespace(ns).Resource("pods").Name(p("a")).SubResource("proxy").DoRaw(t.Context())
				return nil
			}, "CONNECT pods/proxy v1.PodProxyOptions, object v1.PodProxyOptions, old none, options none"},
			{"history", func(t *testing.T) error {
				_,
					err := c.CoreV1().RESTClient().Get().Namespace(ns).Resource("pods").Name(p("a")).SubResource("debug").DoRaw(t.Context())
				return err
			}, "CONNECT pods/debug v1.PodProxyOptions, object v1.PodProxyOptions, old none, options none"},
			{"evict", func(t *testing.T) error {
				return pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p("applied")},
					DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}})
			},
				"CREATE pods/eviction policy/v1.Eviction, object policy/v1.Eviction, old none, options meta.k8s.io/v1.CreateOptions"},
			{"delete", func(t *testing.T) error {
				return pods.Delete(t.Context(), p("a"), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
			}, "DELETE pods v1.Pod, object none, old v1.Pod, options meta.k8s.io/v1.DeleteOptions"},
		} {
			t.Run(way+"/"+tc.what, func(t *testing.T) {
				w.requests()
				if err := tc.do(t); err != nil {
					t.Fatal(err)
				}
				asked := w.requests()
				i := slices.IndexFunc(asked, func(r reviewv1.AdmissionRequest) bool { return seen(r) == tc.want })
				if i < 0 {
					for _, r := range asked {
						t.Logf("it was shown %s", seen(r))
					}
					t.Fatalf("it was not shown %s", tc.want)
				}
				r := asked[i]
				if r.Namespace != ns || r.UserInfo.Username == "" || ptr.Deref(r.DryRun, true) ||
					r.RequestKind == nil || *r.RequestKind != r.Kind {
					t.Errorf("namespace %q, user %+v, dry run %v, request kind %v", r.Namespace, r.UserInfo, r.DryRun,
						r.RequestKind)
				}
			})
		}
	}
}

// EC-21 DC-03 IX-07: a debug session and an image exec are shown as the update of pods/ephemeralcontainers that brings
// the image in.
func TestWebhookSeesDebugging(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	w := newWebhook(t, nil)
	validate(t, c, ns, hook("debug.example.com", w.client(), rule("pods/ephemeralcontainers", "UPDATE")))
	for what, query := range map[string]string{"exec++": session, "image exec": "stdout=true&image=tools:1&command=x"} {
		w.requests()
		if _, err := execInto(t, adminConfig(t), "websocket", ns, "p", query); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		asked := w.requests()
		if len(asked) == 0 {
			t.Fatalf("%s: the webhook was not asked", what)
		}
		const want = "UPDATE pods/ephemeralcontainers v1.Pod, object v1.Pod, old v1.Pod, options meta.k8s.io/v1.UpdateOptions"
		if got := seen(asked[0]); got != want {
			t.Errorf("%s: it was shown\n%s, want\n%s", what, got, want)
		}
		now, was := object[corev1.Pod](t, asked[0].Object.Raw), object[corev1.Pod](t, asked[0].OldObject.Raw)
		if len(now.Spec.EphemeralContainers) != len(was.Spec.EphemeralContainers)+1 {
			t.Fatalf("%s: %d containers after %d", what, len(now.Spec.EphemeralContainers),
				len(was.Spec.EphemeralContainers))
		}
		if e := now.Spec.EphemeralContainers[len(now.Spec.EphemeralContainers)-1]; e.Image != "tools:1" {
			t.Errorf("%s: image %q", what, e.Image)
		}
		if asked[0].Name != "p" || asked[0].UserInfo.Username == "" {
			t.Errorf("%s: name %q, user %+v", what, asked[0].Name, asked[0].UserInfo)
		}
	}
}

// EC-21: webhooks cannot lock anybody out: none is asked about webhooks and policies, or about who may do what.
func TestWebhooksLeaveAWayOut(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	groups := []string{"admissionregistration.k8s.io", "authorization.k8s.io", "authentication.k8s.io"}
	h := hook("everything.example.com",
		newWebhook(t,
			func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse { return denied("everything") }).client(),
		rule("*/*", "*"))
	h.Rules[0].APIGroups = groups
	webhooks := c.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := webhooks.Create(t.Context(), validatingConfig(ns+"-all", h), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := webhooks.Delete(context.Background(), ns+"-all", metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete the webhook that refuses everything: %v", err)
		}
	}()
	validate(t, c, ns) // which also waits until both are in effect
	if _, err := webhooks.Patch(t.Context(), ns+"-x", types.MergePatchType, []byte(`{}`),
		metav1.PatchOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("patch of another configuration: %v", err)
	}
	policies := c.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	if _, err := policies.Create(t.Context(), validatingPolicy(ns, sampleRule(), "true"),
		metav1.CreateOptions{}); err != nil {
		t.Errorf("a policy: %v", err)
	}
	if err := policies.Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
