// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// sidecarFirst is a JSON patch that puts a sidecar before a pod's init containers.
func sidecarFirst(r *reviewv1.AdmissionRequest) string {
	const sidecar = `{"name":"proxy","image":"proxy.example/p:1","restartPolicy":"Always"}`
	if strings.Contains(string(r.Object.Raw), `"initContainers":[`) {
		return `[{"op":"add","path":"/spec/initContainers/0","value":` + sidecar + `}]`
	}
	return `[{"op":"add","path":"/spec/initContainers","value":[` + sidecar + `]}]`
}

// SC-22 EC-21: a mutating webhook puts a sidecar first into any pod, whichever way the pod is created. What it leaves
// out gets its defaults, and what it puts in is validated.
func TestWebhookInjectsSidecarFirst(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	w := newWebhook(t,
		func(r *reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse { return patched(sidecarFirst(r)) })
	mutate(t, c, ns, hook("sidecar.example.com", w.client(), rule("pods", admissionv1.Create)))
	withInit := pod("with-init")
	withInit.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "registry.example/init:1"}}
	for name, create := range map[string]func() (*corev1.Pod, error){
		"create": func() (*corev1.Pod, error) {
			return c.CoreV1().Pods(ns).Create(t.Context(), pod("plain"), metav1.CreateOptions{})
		},
		"with init": func() (*corev1.Pod, error) {
			return c.CoreV1().Pods(ns).Create(t.Context(), withInit, metav1.CreateOptions{})
		},
		"dry run": func() (*corev1.Pod, error) {
			return c.CoreV1().Pods(ns).Create(t.Context(), pod("dry"),
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		},
		"server-side apply": func() (*corev1.Pod, error) {
			return c.CoreV1().Pods(ns).Patch(t.Context(), "applied", types.ApplyPatchType,
				[]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"applied"},"spec":{"containers":[{"name":"a","image":"x.example/a:1"}]}}`),
				metav1.PatchOptions{FieldManager: "test"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := create()
			if err != nil {
				t.Fatal(err)
			}
			inits := p.Spec.InitContainers
			if len(inits) == 0 || inits[0].Name != "proxy" || len(inits) > 1 && inits[1].Name != "init" {
				t.Fatalf("init containers %v", inits)
			}
			if s := inits[0]; s.ImagePullPolicy != corev1.PullIfNotPresent || s.TerminationMessagePath == "" ||
				len(s.VolumeMounts) == 0 {
				t.Errorf("the sidecar lacks defaults or the service account's volume: %+v", s)
			}
		})
	}
	t.Run("the object is validated after it", func(t *testing.T) {
		taken := pod("taken")
		taken.Spec.Containers[0].Name = "proxy"
		if _, err := c.CoreV1().Pods(ns).Create(t.Context(), taken,
			metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "Duplicate value") {
			t.Errorf("a pod with a container of the sidecar's name: %v", err)
		}
	})
}

// EC-21: webhooks are called in order of their configurations' names, each seeing what those before it did; one with
// reinvocationPolicy IfNeeded is called again when another changed the object after it, one without is not.
func TestWebhookReinvocation(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	label := func(key string) *webhook {
		return newWebhook(t, func(r *reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse {
			if len(object[corev1.ConfigMap](t, r.Object.Raw).Labels) == 0 {
				return patched(`[{"op":"add","path":"/metadata/labels","value":{"` + key + `":"1"}}]`)
			}
			return patched(`[{"op":"add","path":"/metadata/labels/` + key + `","value":"1"}]`)
		})
	}
	again, once, last := label("again"), label("once"), label("last")
	about := rule("configmaps", admissionv1.Create)
	a, b, z := hook("again.example.com", again.client(), about), hook("once.example.com", once.client(), about),
		hook("last.example.com", last.client(), about)
	a.ReinvocationPolicy = ptr.To(admissionv1.IfNeededReinvocationPolicy)
	mutate(t, c, ns, a, b, z)
	cm, err := try(t, c, ns)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"again", "once", "last"} {
		if cm.Labels[key] != "1" {
			t.Errorf("label %s is missing: %v", key, cm.Labels)
		}
	}
	asked := again.requests()
	if len(asked) != 2 || len(object[corev1.ConfigMap](t, asked[1].Object.Raw).Labels) != 3 {
		t.Errorf("the one to be called again was called %d times: %s", len(asked), asked[len(asked)-1].Object.Raw)
	}
	if n := len(once.requests()); n != 1 {
		t.Errorf("the one to be called once was called %d times", n)
	}
	if asked := last.requests(); len(asked) != 1 || len(object[corev1.ConfigMap](t, asked[0].Object.Raw).Labels) != 2 {
		t.Errorf("the last one did not see what those before it did")
	}
}

// EC-21: a webhook is told of a dry run, and may not let it have effects: the API takes only webhooks that say so.
func TestWebhookDryRun(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	w := newWebhook(t, nil)
	h := hook("dry.example.com", w.client(), rule("configmaps", admissionv1.Create))
	h.SideEffects = ptr.To(admissionv1.SideEffectClassNoneOnDryRun)
	validate(t, c, ns, h)
	if _, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("dry"),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if asked := w.requests(); len(asked) != 1 || !ptr.Deref(asked[0].DryRun, false) {
		t.Errorf("a dry run was shown as %+v", asked)
	}
	h.SideEffects = ptr.To(admissionv1.SideEffectClassSome)
	_, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		validatingConfig(ns+"-some", h), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "sideEffects") {
		t.Errorf("a webhook with side effects: %v", err)
	}
}

// EC-21: a rule about one of two APIs of the same objects is one about the other too, unless matchPolicy is Exact. The
// webhook is shown the object in the version that it asked for.
func TestWebhookMatchPolicy(t *testing.T) {
	c := client(t)
	for _, match := range []admissionv1.MatchPolicyType{"", admissionv1.Equivalent, admissionv1.Exact} {
		t.Run("policy "+string(match), func(t *testing.T) {
			ns := namespace(t, c)
			w := newWebhook(t, nil)
			h := hook("events.example.com", w.client(), rule("events", admissionv1.Create))
			h.Rules[0].APIGroups = []string{eventsv1.GroupName}
			if match != "" {
				h.MatchPolicy = &match
			}
			validate(t, c, ns, h)
			_, err := c.CoreV1().Events(ns).Create(t.Context(),
				&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: ns}, Reason: "R", Message: "hello",
					InvolvedObject: corev1.ObjectReference{Namespace: ns, Name: "x", Kind: "Pod"}},
				metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			asked := w.requests()
			if match == admissionv1.Exact {
				if len(asked) != 0 {
					t.Errorf("asked about another API: %+v", asked)
				}
				return
			}
			if len(asked) != 1 {
				t.Fatalf("asked %d times", len(asked))
			}
			r := asked[0]
			if r.Kind.Group != eventsv1.GroupName || r.RequestKind.Group != "" ||
				object[eventsv1.Event](t, r.Object.Raw).Note != "hello" {
				t.Errorf("kind %v, requested %v, object %s", r.Kind, r.RequestKind, r.Object.Raw)
			}
		})
	}
}

// EC-21: a webhook named by its service is called at a ready endpoint of it, under the service's name. Its warnings
// reach the client, and its refusal has its code.
func TestWebhookByService(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	address := hostAddress(t)
	w := newWebhookOn(t, address, func(r *reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse {
		if strings.HasPrefix(r.Name, "no") {
			d := denied("no such names")
			d.Result.Code, d.Result.Reason = 422, metav1.StatusReasonInvalid
			return d
		}
		return &reviewv1.AdmissionResponse{Allowed: true, Warnings: []string{"mind the gap"}}
	}, "hook."+ns+".svc")
	svc := hookService(t, c, ns, "hook")
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(u.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "hook",
		Labels: map[string]string{discoveryv1.LabelServiceName: svc.Name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To(""),
			Port: ptr.To(int32(port))}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}},
			{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}}}
	if _, err := c.DiscoveryV1().EndpointSlices(ns).Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	h := hook("service.example.com", admissionv1.WebhookClientConfig{CABundle: w.ca,
		Service: &admissionv1.ServiceReference{Namespace: ns, Name: "hook"}}, rule("configmaps", "*"))
	validate(t, c, ns, h)

	config, warned := adminConfig(t), &hookWarnings{}
	config.WarningHandler = warned
	c = clientOf(t, config)
	if _, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("yes"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := warned.texts(); len(got) != 1 || got[0] != "mind the gap" {
		t.Errorf("warnings %q", got)
	}
	if _, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("no"),
		metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("want the webhook's own status, got %v", err)
	}
}

// EC-21 SC-16: a webhook may itself create objects in the namespace of the request that it is asked about, also where a
// quota has creates take turns.
func TestWebhookCreatesInNamespaceWithQuota(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("10")}}}
	if _, err := c.CoreV1().ResourceQuotas(ns).Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w := newWebhook(t, func(r *reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse {
		if strings.HasPrefix(r.Name, "note-") {
			return &reviewv1.AdmissionResponse{Allowed: true}
		}
		if _, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("note-"+r.Name),
			metav1.CreateOptions{}); err != nil {
			return denied(fmt.Sprintf("cannot take a note: %v", err))
		}
		return &reviewv1.AdmissionResponse{Allowed: true}
	})
	h := hook("notes.example.com", w.client(), rule("configmaps", admissionv1.Create))
	h.TimeoutSeconds = ptr.To[int32](20)
	validate(t, c, ns, h)
	if _, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Errorf("create: %v", err)
	}
}
