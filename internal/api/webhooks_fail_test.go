// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// broken is a webhook of which one link is broken.
type broken struct {
	what string
	hook func(t *testing.T, c kubernetes.Interface, ns string) admissionv1.MutatingWebhook
	want string // part of the refusal
	// always: the answer was the webhook's, and no failure to reach it; failurePolicy has no say.
	always bool
}

func at(client admissionv1.WebhookClientConfig) admissionv1.MutatingWebhook {
	return hook("broken.example.com", client, rule("configmaps", admissionv1.Create))
}

// answering is a webhook whose server answers as it likes.
func answering(h http.HandlerFunc) func(*testing.T, kubernetes.Interface, string) admissionv1.MutatingWebhook {
	return func(t *testing.T, _ kubernetes.Interface, _ string) admissionv1.MutatingWebhook {
		id, url := serveHook(t, h, "127.0.0.1")
		return at(admissionv1.WebhookClientConfig{URL: &url, CABundle: id.ca})
	}
}

func reviewing(answer func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionReview) func(*testing.T, kubernetes.Interface,
	string) admissionv1.MutatingWebhook {
	return answering(func(w http.ResponseWriter, req *http.Request) {
		var review reviewv1.AdmissionReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(answer(review.Request))
	})
}

func withReview(kind string, response *reviewv1.AdmissionResponse) *reviewv1.AdmissionReview {
	return &reviewv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: kind},
		Response: response}
}

// brokenLinks are broken for webhooks of both sorts.
func brokenLinks() []broken {
	return []broken{
		{"nobody listens", func(t *testing.T, _ kubernetes.Interface, _ string) admissionv1.MutatingWebhook {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
			return at(admissionv1.WebhookClientConfig{URL: ptr.To("https://" + l.Addr().String())})
		}, "connection refused", false},
		{"another CA", func(t *testing.T, _ kubernetes.Interface, _ string) admissionv1.MutatingWebhook {
			client := newWebhook(t, nil).client()
			client.CABundle = newIdentity(t, "127.0.0.1").ca
			return at(client)
		}, "certificate signed by unknown authority", false},
		{"no CA", func(t *testing.T, _ kubernetes.Interface, _ string) admissionv1.MutatingWebhook {
			client := newWebhook(t, nil).client()
			client.CABundle = nil
			return at(client)
		}, "certificate signed by unknown authority", false},
		{"a CA that is none", func(t *testing.T, _ kubernetes.Interface, _ string) admissionv1.MutatingWebhook {
			client := newWebhook(t, nil).client()
			client.CABundle = []byte("-")
			return at(client)
		}, "unable to load root certificates", false},
		{"another name", func(t *testing.T, _ kubernetes.Interface, _ string) admissionv1.MutatingWebhook {
			id, url := serveHook(t, http.NotFoundHandler(), "elsewhere.example.com")
			return at(admissionv1.WebhookClientConfig{URL: &url, CABundle: id.ca})
		}, "certificate for 127.0.0.1", false},
		{"no answer in time", func(t *testing.T, c kubernetes.Interface, ns string) admissionv1.MutatingWebhook {
			h := answering(func(_ http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body) // only then the server notices that the client has gone
				<-req.Context().Done()
			})(t, c, ns)
			h.TimeoutSeconds = ptr.To[int32](1)
			return h
		}, "deadline exceeded", false},
		{"500", answering(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "out of order", http.StatusInternalServerError)
		}), "out of order", false},
		{"404", answering(http.NotFound), "the server could not find the requested resource", false},
		{"no JSON", answering(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }),
			"couldn't get version/kind", false},
		{"nothing", answering(func(http.ResponseWriter, *http.Request) {}), "0-length response", false},
		{"another UID", reviewing(func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionReview {
			return withReview("AdmissionReview", &reviewv1.AdmissionResponse{Allowed: true, UID: types.UID("other")})
		}), `expected response.uid=`, false},
		{"no UID", reviewing(func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionReview {
			return withReview("AdmissionReview", &reviewv1.AdmissionResponse{Allowed: true})
		}), `expected response.uid=`, false},
		{"another kind", reviewing(func(r *reviewv1.AdmissionRequest) *reviewv1.AdmissionReview {
			return withReview("Other", &reviewv1.AdmissionResponse{Allowed: true, UID: r.UID})
		}), "Other", false},
		{"no response",
			reviewing(func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionReview {
				return withReview("AdmissionReview", nil)
			}), "webhook response was absent", false},
		{"no service", func(_ *testing.T, _ kubernetes.Interface, ns string) admissionv1.MutatingWebhook {
			return at(admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: ns,
				Name: "nobody"}})
		}, `"nobody" not found`, false},
		{"a service without endpoints", func(t *testing.T, c kubernetes.Interface,
			ns string) admissionv1.MutatingWebhook {
			hookService(t, c, ns, "lonely")
			return at(admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: ns,
				Name: "lonely"}})
		}, "no endpoints available", false},
		{"a port that the service has not", func(t *testing.T, c kubernetes.Interface,
			ns string) admissionv1.MutatingWebhook {
			hookService(t, c, ns, "ported")
			return at(admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: ns,
				Name: "ported", Port: ptr.To[int32](8443)}})
		}, "no port 8443", false},
		{"a condition that fails", func(t *testing.T, _ kubernetes.Interface, _ string) admissionv1.MutatingWebhook {
			h := at(newWebhook(t, nil).client())
			h.MatchConditions = []admissionv1.MatchCondition{{Name: "deep", Expression: "object.spec.not.there == 'x'"}}
			return h
		}, "no such key: spec", false},
		{"a refusal", func(t *testing.T, _ kubernetes.Interface, _ string) admissionv1.MutatingWebhook {
			return at(newWebhook(t,
				func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse { return denied("not today") }).client())
		}, `admission webhook "broken.example.com" denied the request: not today`, true},
	}
}

// brokenPatches are broken for webhooks that change objects.
func brokenPatches() []broken {
	patching := func(r *reviewv1.AdmissionResponse) func(*testing.T, kubernetes.Interface,
		string) admissionv1.MutatingWebhook {
		return func(t *testing.T, _ kubernetes.Interface, _ string) admissionv1.MutatingWebhook {
			return at(newWebhook(t,
				func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse { return r.DeepCopy() }).client())
		}
	}
	return []broken{
		{"a patch without a type", patching(&reviewv1.AdmissionResponse{Allowed: true, Patch: []byte(`[]`)}),
			"webhook returned response.patch but not response.patchType", false},
		{"a patch of another type", patching(&reviewv1.AdmissionResponse{Allowed: true,
			Patch: []byte(`[{"op":"add","path":"/data","value":{}}]`), PatchType: ptr.To(reviewv1.PatchType("Merge"))}),
			`unsupported patch type "Merge"`, false},
		{"a type without a patch", patching(&reviewv1.AdmissionResponse{Allowed: true,
			PatchType: ptr.To(reviewv1.PatchTypeJSONPatch)}),
			"webhook returned response.patchType but not response.patch", false},
		{"a patch that is none", patching(patched(`{"a"}`)), "undecodable patch", false},
		{"a patch that does not fit", patching(patched(`[{"op":"replace","path":"/nothing/here","value":1}]`)),
			"nothing", true},
		{"a test that fails", patching(patched(`[{"op":"test","path":"/metadata/namespace","value":"x"}]`)),
			"testing value /metadata/namespace failed", true},
		{"a patch that breaks the object", patching(patched(`[{"op":"replace","path":"/metadata","value":7}]`)),
			"cannot unmarshal", true},
	}
}

func hookService(t *testing.T, c kubernetes.Interface, ns, name string) *corev1.Service {
	t.Helper()
	svc, err := c.CoreV1().Services(ns).Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

// EC-21: each link between the server and a webhook is broken; requests are refused then if failurePolicy is Fail, as
// it is where none is given, and pass if it is Ignore. What the webhook itself refused is refused either way.
func TestWebhooksFailClosed(t *testing.T) {
	type sort struct {
		name    string
		install func(*testing.T, kubernetes.Interface, string, ...admissionv1.MutatingWebhook)
		links   []broken
	}
	c := client(t)
	for _, s := range []sort{{"validating", validate, brokenLinks()},
		{"mutating", mutate, append(brokenLinks(), brokenPatches()...)}} {
		t.Run(s.name, func(t *testing.T) {
			for _, tc := range s.links {
				t.Run(tc.what, func(t *testing.T) {
					for _, failure := range []*admissionv1.FailurePolicyType{nil, ptr.To(admissionv1.Ignore)} {
						t.Run(string(ptr.Deref(failure, "Fail")), func(t *testing.T) {
							ns := namespace(t, c)
							h := tc.hook(t, c, ns)
							h.FailurePolicy = failure
							s.install(t, c, ns, h)
							_, err := try(t, c, ns)
							switch {
							case failure != nil && !tc.always:
								if err != nil {
									t.Errorf("refused, though failures are to be ignored: %v", err)
								}
							case !isRefusal(err):
								t.Errorf("want a refusal, got %v", err)
							case !strings.Contains(err.Error(), tc.want):
								t.Errorf("the refusal says %q, want %q", err, tc.want)
							}
						})
					}
				})
			}
		})
	}
}

// EC-21: fields that a manifest leaves out never make a webhook look away: without selectors it sees every namespace
// and object.
func TestWebhookWithLeastFieldsSeesEverything(t *testing.T) {
	c, dyn := client(t), dynamicClient(t)
	ns := namespace(t, c)
	marked := func(r *reviewv1.AdmissionRequest) bool { return strings.Contains(string(r.Object.Raw), ns) }
	w := newWebhook(t, func(r *reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse {
		if marked(r) {
			return denied("marked")
		}
		return &reviewv1.AdmissionResponse{Allowed: true}
	})
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		t.Run(kind, func(t *testing.T) {
			name := strings.ToLower(kind) + "-" + ns
			ri := dyn.Resource(admissionGV.WithResource(strings.ToLower(kind) + "s"))
			_, err := ri.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": admissionGV.String(), "kind": kind, "metadata": map[string]any{"name": name},
				"webhooks": []any{map[string]any{
					"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
					"clientConfig": map[string]any{"url": w.url, "caBundle": w.ca},
					"rules": []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""},
						"apiVersions": []any{"v1"}, "resources": []any{"serviceaccounts"}}},
				}},
			}}, metav1.CreateOptions{FieldValidation: "Strict"})
			if err != nil {
				t.Fatal(err)
			}
			inEffect(t, c, ns, validatingMarker)
			if err := ri.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			// it is about everybody's accounts, and its server is about to go
			untilMarked(t, c, ns, validatingMarker, false)
		})
	}
}
