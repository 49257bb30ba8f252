// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// bearer is a configuration that shows a token and no certificate.
func bearer(t *testing.T, token string) *rest.Config {
	config := rest.AnonymousClientConfig(adminConfig(t))
	config.BearerToken = token
	config.QPS = -1
	return config
}

func accountToken(t *testing.T, c kubernetes.Interface, ns, name string) string {
	t.Helper()
	req, err := c.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return req.Status.Token
}

func status(t *testing.T, err error) metav1.Status {
	t.Helper()
	s, ok := err.(apierrors.APIStatus)
	if !ok {
		t.Fatalf("not a status: %v", err)
	}
	return s.Status()
}

// Refusals have the code, the reason, the causes and the words that clients and people rely on (PL-15).
func TestRefusals(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	createPod(t, c, ns, pod("there"))
	stranger := clientOf(t, bearer(t, accountToken(t, c, ns, "default")))
	jane := clientOf(t, bearer(t, "jane-token"))
	pods := c.CoreV1().Pods(ns)
	create := func(ctx context.Context, change func(*corev1.Pod)) error {
		p := pod("new")
		change(p)
		_, err := pods.Create(ctx, p, metav1.CreateOptions{FieldValidation: "Strict"})
		return err
	}
	for _, test := range []struct {
		name   string
		do     func(ctx context.Context) error
		code   int32
		reason metav1.StatusReason
		words  []string
		field  string
	}{
		{"missing object",
			func(ctx context.Context) error { _, err := pods.Get(ctx, "nope", metav1.GetOptions{}); return err }, 404,
			metav1.StatusReasonNotFound, []string{`pods "nope" not found`}, ""},
		{"object that exists", func(ctx context.Context) error {
			_, err := pods.Create(ctx, pod("there"), metav1.CreateOptions{})
			return err
		},
			409, metav1.StatusReasonAlreadyExists, []string{`pods "there" already exists`}, ""},
		{"stale resource version", func(ctx context.Context) error {
			p, err := pods.Get(ctx, "there", metav1.GetOptions{})
			if err != nil {
				return err
			}
			p.Labels = map[string]string{"n": "1"}
			if _, err := pods.Update(ctx, p, metav1.UpdateOptions{}); err != nil {
				return err
			}
			p.Labels = map[string]string{"n": "2"}
			_, err = pods.Update(ctx, p, metav1.UpdateOptions{})
			return err
		}, 409, metav1.StatusReasonConflict,
			[]string{"the object has been modified; please apply your changes to the latest version"}, ""},
		{"no containers", func(ctx context.Context) error {
			return create(ctx, func(p *corev1.Pod) { p.Spec.Containers = nil })
		}, 422, metav1.StatusReasonInvalid, []string{`Pod "new" is invalid`}, "spec.containers"},
		{"EC-02 ephemeral containers on create", func(ctx context.Context) error {
			return create(ctx, func(p *corev1.Pod) {
				p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
					Name: "debug", Image: "x", ImagePullPolicy: corev1.PullAlways,
					TerminationMessagePolicy: corev1.TerminationMessageReadFile}}}
			})
		}, 422, metav1.StatusReasonInvalid, nil, "spec.ephemeralContainers"},
		{"changed image of a missing container", func(ctx context.Context) error {
			_, err := pods.Patch(ctx, "there", types.JSONPatchType,
				[]byte(`[{"op":"replace","path":"/spec/containers/7/image","value":"x"}]`), metav1.PatchOptions{})
			return err
		}, 422, metav1.StatusReasonInvalid, nil, ""},
		{"immutable field", func(ctx context.Context) error {
			_, err := pods.Patch(ctx, "there", types.MergePatchType, []byte(`{"spec":{"restartPolicy":"Never"}}`),
				metav1.PatchOptions{})
			return err
		}, 422, metav1.StatusReasonInvalid, []string{"pod updates may not change fields other than"}, "spec"},
		{"EC-03 ordinary update with ephemeral containers", func(ctx context.Context) error {
			_, err := pods.Patch(ctx, "there", types.MergePatchType,
				[]byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"x"}]}}`), metav1.PatchOptions{})
			return err
		}, 422, metav1.StatusReasonInvalid, nil, ""},
		{"missing namespace", func(ctx context.Context) error {
			_, err := c.CoreV1().Pods("no-such-ns").Create(ctx, pod("p"), metav1.CreateOptions{})
			return err
		}, 404, metav1.StatusReasonNotFound, []string{`namespaces "no-such-ns" not found`}, ""},
		{"missing service account", func(ctx context.Context) error {
			return create(ctx, func(p *corev1.Pod) { p.Spec.ServiceAccountName = "ghost" })
		}, 403, metav1.StatusReasonForbidden, []string{"error looking up service account " + ns + "/ghost",
			`serviceaccounts "ghost" not found`}, ""},
		{"missing priority class", func(ctx context.Context) error {
			return create(ctx, func(p *corev1.Pod) { p.Spec.PriorityClassName = "vip" })
		}, 403, metav1.StatusReasonForbidden, []string{"no PriorityClass with name vip was found"}, ""},
		{"unknown field, strict", func(ctx context.Context) error {
			return c.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").Param("fieldValidation", "Strict").
				SetHeader("Content-Type", "application/json").
				Body([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"contaners":[]}}`)).Do(ctx).Error()
		}, 400, metav1.StatusReasonBadRequest, []string{`unknown field "spec.contaners"`}, ""},
		{"malformed JSON", func(ctx context.Context) error {
			return c.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").SetHeader("Content-Type",
				"application/json").
				Body([]byte(`{"apiVersion":"v1",`)).Do(ctx).Error()
		}, 400, metav1.StatusReasonBadRequest, nil, ""},
		{"wrong type", func(ctx context.Context) error {
			return c.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").SetHeader("Content-Type",
				"application/json").
				Body([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":"all"}}`)).Do(ctx).Error()
		}, 400, metav1.StatusReasonBadRequest, nil, ""},
		{"unsupported media type", func(ctx context.Context) error {
			return c.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").SetHeader("Content-Type",
				"text/plain").Body([]byte("hi")).Do(ctx).Error()
		}, 415, metav1.StatusReasonUnsupportedMediaType, nil, ""},
		{"unknown kind", func(ctx context.Context) error {
			return c.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/" + ns + "/gadgets").Do(ctx).Error()
		}, 404, metav1.StatusReasonNotFound, nil, ""},
		{"unknown field selector", func(ctx context.Context) error {
			_, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.color=red"})
			return err
		}, 400, metav1.StatusReasonBadRequest, []string{"field label not supported", "spec.color"}, ""},
		{"immortal namespace", func(ctx context.Context) error {
			return c.CoreV1().Namespaces().Delete(ctx, "kube-system", metav1.DeleteOptions{})
		}, 403, metav1.StatusReasonForbidden, []string{"this namespace may not be deleted"}, ""},
		{"service account", func(ctx context.Context) error {
			_, err := stranger.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
			return err
		}, 403, metav1.StatusReasonForbidden, []string{`User "system:serviceaccount:` + ns +
			`:default" cannot list resource "pods"`, `namespace "` + ns + `"`}, ""},
		{"known user without rights", func(ctx context.Context) error {
			return jane.CoreV1().Secrets(ns).Delete(ctx, "x", metav1.DeleteOptions{})
		}, 403, metav1.StatusReasonForbidden, []string{`User "jane" cannot delete resource "secrets"`}, ""},
		{"wrong token", func(ctx context.Context) error {
			_, err := clientOf(t, bearer(t, "guess")).CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
			return err
		}, 401, metav1.StatusReasonUnauthorized, nil, ""},
		{"nobody", func(ctx context.Context) error {
			_, err := clientOf(t, bearer(t, "")).Discovery().ServerVersion()
			return err
		}, 401, metav1.StatusReasonUnauthorized, nil, ""},
		{"event without its controller", func(ctx context.Context) error {
			_, err := c.EventsV1().Events(ns).Create(ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"},
				EventTime: metav1.NowMicro(), Regarding: corev1.ObjectReference{Namespace: ns}, Reason: "R",
				Action: "A", Type: "Normal"}, metav1.CreateOptions{})
			return err
		}, 422, metav1.StatusReasonInvalid, nil, "reportingController"},
		{"changed type of a secret", func(ctx context.Context) error {
			if _, err := c.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}},
				metav1.CreateOptions{}); err != nil {
				return err
			}
			_, err := c.CoreV1().Secrets(ns).Patch(ctx, "s", types.MergePatchType, []byte(`{"type":"other"}`),
				metav1.PatchOptions{})
			return err
		}, 422, metav1.StatusReasonInvalid, []string{"field is immutable"}, "type"},
		{"exec in a pod whose node is gone", func(ctx context.Context) error {
			boundPod(t, c, ns, pod("lost"))
			return c.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").Name("lost").SubResource("exec").Param("command", "true").Param("stdout", "true").Do(ctx).Error()
		}, 503, metav1.StatusReasonServiceUnavailable, []string{`node "node-1" is not registered`}, ""},
		{"service range", func(ctx context.Context) error {
			s := service("x")
			s.Spec.ClusterIP = "192.168.1.1"
			_, err := c.CoreV1().Services(ns).Create(ctx, s, metav1.CreateOptions{})
			return err
		}, 422, metav1.StatusReasonInvalid, []string{"not in the valid range", "10.96.0.0/12"}, "spec.clusterIPs[0]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.do(t.Context())
			if err == nil {
				t.Fatal("it was allowed")
			}
			s := status(t, err)
			if s.Code != test.code || s.Reason != test.reason {
				t.Errorf("got %d %s, want %d %s: %s", s.Code, s.Reason, test.code, test.reason, s.Message)
			}
			for _, w := range test.words {
				if !strings.Contains(s.Message, w) {
					t.Errorf("%q does not say %q", s.Message, w)
				}
			}
			if test.field != "" && (s.Details == nil || !slices.ContainsFunc(s.Details.Causes,
				func(c metav1.StatusCause) bool { return c.Field == test.field })) {
				t.Errorf("no cause names %s: %+v", test.field, s.Details)
			}
		})
	}
}

// A pod of more than 1.5 MiB is refused in words that say so, whether on create or by growing; nothing is half done
// (PL-15).
func TestTooLarge(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	big := func(n int) *corev1.Pod {
		p := pod("big")
		p.Spec.Containers[0].Args = []string{strings.Repeat("x", n)}
		return p
	}
	for name, size := range map[string]int{"above the store's limit": 1600 << 10, "above the request limit": 4 << 20} {
		t.Run(name, func(t *testing.T) {
			_, err := c.CoreV1().Pods(ns).Create(t.Context(), big(size), metav1.CreateOptions{})
			if s := status(t, err); s.Code != http.StatusRequestEntityTooLarge {
				t.Errorf("got %d: %s", s.Code, s.Message)
			}
			if name == "above the store's limit" && !strings.Contains(err.Error(), "1.5 MiB") {
				t.Errorf("%q does not name the limit", err)
			}
		})
	}
	if _, err := c.CoreV1().Pods(ns).Get(t.Context(), "big", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a refused pod is there: %v", err)
	}
	if _, err := c.CoreV1().Pods(ns).Create(t.Context(), big(1200<<10), metav1.CreateOptions{}); err != nil {
		t.Errorf("a pod of 1.2 MiB: %v", err)
	}
	grow := []byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"activeDeadlineSeconds":1}}`)
	if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "big", types.MergePatchType, grow,
		metav1.PatchOptions{}); err != nil {
		t.Errorf("a large pod cannot be patched: %v", err)
	}
}

// Unknown fields warn by default, and nothing is stored on a dry run.
func TestWarningsAndDryRun(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	var warnings []string
	result := c.CoreV1().RESTClient().Post().Namespace(ns).Resource("configmaps").Param("fieldValidation", "Warn").
		SetHeader("Content-Type", "application/json").
		WarningHandler(warningFunc(func(text string) { warnings = append(warnings, text) })).
		Body([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w"},"dota":{}}`)).Do(t.Context())
	if result.Error() != nil || len(warnings) != 1 || !strings.Contains(warnings[0], `unknown field "dota"`) {
		t.Errorf("got %v, warnings %q", result.Error(), warnings)
	}
	p, err := c.CoreV1().Pods(ns).Create(t.Context(), pod("dry"),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || p.UID == "" || p.Spec.ServiceAccountName != "default" {
		t.Errorf("dry run gave %v, %v", p, err)
	}
	if _, err := c.CoreV1().Pods(ns).Get(t.Context(), "dry", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run: %v", err)
	}
	svc, err := c.CoreV1().Services(ns).Create(t.Context(), service("dry"),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	again := service("wet")
	again.Spec.ClusterIP = svc.Spec.ClusterIP
	if _, err := c.CoreV1().Services(ns).Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
		t.Errorf("the dry run kept its address: %v", err)
	}
	boundPod(t, c, ns, pod("stays"))
	del := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, GracePeriodSeconds: ptr.To[int64](0)}
	if err := c.CoreV1().Pods(ns).Delete(t.Context(), "stays", del); err != nil {
		t.Error(err)
	}
	if p, err := c.CoreV1().Pods(ns).Get(t.Context(), "stays", metav1.GetOptions{}); err != nil ||
		p.DeletionTimestamp != nil {
		t.Errorf("after a dry delete: %v, %v", p, err)
	}
}

type warningFunc func(string)

func (f warningFunc) HandleWarningHeader(_ int, _, text string) { f(text) }
