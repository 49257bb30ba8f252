// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/audit/trail"
)

// auditLog is that of the shared server.
func auditLog() string { return audit.DefaultPath(shared.dir) }

// onRecord waits for an event of a namespace in a log, and returns it with its line.
func onRecord(t *testing.T, log, namespace string, want func(*auditv1.Event) bool) (event *auditv1.Event, line string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var seen []string
	err := trail.Follow(ctx, log, trail.Filter{Namespace: namespace}, func(e trail.Event) error {
		seen = append(seen, string(e.Line))
		if want(&e.Event) {
			event, line = e.DeepCopy(), string(e.Line)
			cancel()
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if event == nil {
		t.Fatalf("not on record; there is of namespace %q:\n%s", namespace, strings.Join(seen, "\n"))
	}
	return event, line
}

// ended picks the end of a request on a subresource with a code.
func ended(subresource string, code int32) func(*auditv1.Event) bool {
	return func(e *auditv1.Event) bool {
		return e.Stage == auditv1.StageResponseComplete && e.ObjectRef.Subresource == subresource &&
			e.ResponseStatus != nil && e.ResponseStatus.Code == code
	}
}

// asUser is the admin acting as somebody else.
func asUser(t testing.TB, name string, groups ...string) *rest.Config {
	c := rest.CopyConfig(adminConfig(t))
	c.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	return c
}

func wantNotes(t *testing.T, e *auditv1.Event, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := e.Annotations["debug.wherry.dev/"+pairs[i]]; got != pairs[i+1] {
			t.Errorf("annotation %s is %q, want %q", pairs[i], got, pairs[i+1])
		}
	}
}

// TestAuditOfDebugging proves EC-22: an added ephemeral container is on record with user, verb, object, image, command
// and response code; that exec++ is recorded as the same update would be (DC-03), and image exec with image and command
// (IX-07); and that what was refused is on record with its code.
func TestAuditOfDebugging(t *testing.T) {
	node := newDebugNode(t)
	c := node.client
	ns := namespace(t, c)
	node.pod(t, ns, pod("web"))
	log := auditLog()
	admin, err := c.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	me := "wherry-admin"
	if err == nil {
		me = admin.Status.UserInfo.Username
	}

	t.Run("EC-22 an update of pods/ephemeralcontainers", func(t *testing.T) {
		body := `{"spec":{"ephemeralContainers":[{"name":"first","image":"tools:1","command":["sh"],"args":["-c","id"],"targetContainerName":"main"}]}}`
		if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(body),
			metav1.PatchOptions{}, "ephemeralcontainers"); err != nil {
			t.Fatal(err)
		}
		e, _ := onRecord(t, log, ns, ended("ephemeralcontainers", 200))
		if e.User.Username != me || e.Verb != "patch" || e.ObjectRef.Name != "web" || e.ObjectRef.Resource != "pods" ||
			e.Level != auditv1.LevelMetadata {
			t.Errorf("%+v", e)
		}
		wantNotes(t, e, "container", "first", "image", "tools:1", "command", `["sh","-c","id"]`, "target", "main",
			"added", `[{"name":"first","image":"tools:1","command":["sh","-c","id"],"target":"main"}]`)
	})
	t.Run("EC-22 a refused update", func(t *testing.T) {
		body := `{"spec":{"ephemeralContainers":[{"name":"bad","image":"tools:1","targetContainerName":"nobody"}]}}`
		if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(body),
			metav1.PatchOptions{}, "ephemeralcontainers"); err == nil {
			t.Fatal("accepted")
		}
		e, _ := onRecord(t, log, ns, ended("ephemeralcontainers", 422))
		wantNotes(t, e, "container", "bad", "image", "tools:1", "target", "nobody")
	})
	t.Run("EC-22 one who may not", func(t *testing.T) {
		other := clientOf(t, asUser(t, "eve-"+ns))
		body := `{"spec":{"ephemeralContainers":[{"name":"evil","image":"tools:1"}]}}`
		if _, err := other.CoreV1().Pods(ns).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(body),
			metav1.PatchOptions{}, "ephemeralcontainers"); err == nil {
			t.Fatal("accepted")
		}
		e, _ := onRecord(t, log, ns, ended("ephemeralcontainers", 403))
		if e.User.Username != me || e.ImpersonatedUser == nil || e.ImpersonatedUser.Username != "eve-"+ns {
			t.Errorf("user %+v, impersonated %+v", e.User, e.ImpersonatedUser)
		}
	})
	t.Run("DC-03", func(t *testing.T) {
		// a client of SPDY does not hear how a container ended, and has left it
		for way, how := range map[string]struct{ image, note, is string }{
			"websocket": {"shell:2", "exit-code", "0"},
			"spdy":      {"tools:2", "end", "left: the container is still running"},
		} {
			t.Run("exec++ by "+way, func(t *testing.T) {
				t.Parallel() // the server waits a while for the end of what a client has left
				name := "d-" + way
				if _, err := execInto(t, adminConfig(t), way, ns, "web",
					"stdout=true&ephemeralContainerName="+name+
						"&ephemeralContainerImage="+how.image+
						"&ephemeralContainerTarget=main&command=sh&command=-i"); err != nil {
					t.Fatal(err)
				}
				mine := func(stage auditv1.Stage) func(*auditv1.Event) bool {
					return func(e *auditv1.Event) bool {
						return e.Stage == stage && e.ObjectRef.Subresource == "exec" &&
							e.Annotations["debug.wherry.dev/container"] == name
					}
				}
				begin, _ := onRecord(t, log, ns, mine(auditv1.StageResponseStarted))
				end, _ := onRecord(t, log, ns, mine(auditv1.StageResponseComplete))
				for _, e := range []*auditv1.Event{begin, end} {
					if e.ResponseStatus.Code != http.StatusSwitchingProtocols || e.User.Username != me ||
						e.ObjectRef.Name != "web" {
						t.Errorf("%+v", e)
					}
					wantNotes(t, e, "kind", "EphemeralContainer", "image", how.image, "command", `["sh","-i"]`,
						"target", "main", "added", `[{"name":"`+name+
							`","image":"`+how.image+`","command":["sh","-i"],"target":"main"}]`)
				}
				wantNotes(t, end, how.note, how.is)
			})
		}
	})
	for _, way := range []string{"websocket", "spdy"} {
		t.Run("DC-03 how it ended, by "+way, func(t *testing.T) {
			name := "f-" + way
			if _, err := execInto(t, adminConfig(t), way, ns, "web",
				"stdout=true&ephemeralContainerName="+name+"&ephemeralContainerImage=flash:1"); err != nil {
				t.Fatal(err)
			}
			e, _ := onRecord(t, log, ns, func(e *auditv1.Event) bool {
				return ended("exec", 101)(e) && e.Annotations["debug.wherry.dev/container"] == name
			})
			wantNotes(t, e, "image", "flash:1", "exit-code", "3")
		})
		t.Run("IX-07 image exec by "+way, func(t *testing.T) {
			_, err := execInto(t, adminConfig(t), way, ns, "web",
				"stdout=true&image=kit-"+way+"&container=main&writable=true&command=exit&command=7")
			if err == nil {
				t.Fatal("exit code 7 is lost")
			}
			e, _ := onRecord(t, log, ns, func(e *auditv1.Event) bool {
				return ended("exec", 101)(e) && e.Annotations["debug.wherry.dev/image"] == "kit-"+way
			})
			wantNotes(t, e, "kind", "ImageExec", "command", `["exit","7"]`, "container", "main", "writable", "true")
			if way == "websocket" {
				wantNotes(t, e, "exit-code", "7")
			}
		})
		t.Run("EC-22 exec by "+way, func(t *testing.T) {
			if _, err := execInto(t, adminConfig(t), way, ns, "web",
				"stdout=true&command=echo&command="+way); err != nil {
				t.Fatal(err)
			}
			e, _ := onRecord(t, log, ns, func(e *auditv1.Event) bool {
				return ended("exec", 101)(e) && e.Annotations["debug.wherry.dev/command"] == `["echo","`+way+`"]`
			})
			wantNotes(t, e, "kind", "Exec", "container", "main")
		})
		t.Run("EC-22 a node that refuses by "+way, func(t *testing.T) {
			node.answer("exec",
				func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not today", http.StatusForbidden) })
			t.Cleanup(func() { node.answer("exec", nil) })
			if _, err := execInto(t, adminConfig(t), way, ns, "web",
				"stdout=true&command=refused&command="+way); err == nil {
				t.Fatal("accepted")
			}
			e, _ := onRecord(t, log, ns, func(e *auditv1.Event) bool {
				return e.Stage == auditv1.StageResponseComplete &&
					e.Annotations["debug.wherry.dev/command"] == `["refused","`+way+`"]`
			})
			// To a WebSocket client the server has agreed before it asks the node; the refusal is in its words.
			if way == "spdy" && e.ResponseStatus.Code != http.StatusForbidden {
				t.Errorf("on record with %d", e.ResponseStatus.Code)
			}
			if e.Annotations["debug.wherry.dev/exit-code"] != "" || e.Annotations["debug.wherry.dev/end"] == "" {
				t.Errorf("annotations %v", e.Annotations)
			}
		})
		t.Run("IX-07 refused by "+way, func(t *testing.T) {
			name := "mallory-" + way + "-" + ns
			if _, err := execInto(t, asUser(t, name), way, ns, "web", "stdout=true&image=evil&command=id"); err == nil {
				t.Fatal("accepted")
			}
			e, _ := onRecord(t, log, ns, func(e *auditv1.Event) bool {
				return ended("exec", 403)(e) && e.ImpersonatedUser != nil && e.ImpersonatedUser.Username == name
			})
			if !strings.Contains(e.RequestURI, "image=evil") || !strings.Contains(e.RequestURI, "command=id") {
				t.Errorf("%s", e.RequestURI)
			}
		})
	}
}

// TestAuditKeepsNoSecret proves that tokens, secrets and passwords do not get on record, whichever way a client sends
// them.
func TestAuditKeepsNoSecret(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	secret := "s3cr3t" + rand.String(10)
	if _, err := c.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "db"}, StringData: map[string]string{"password": secret},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Secrets(ns).Get(t.Context(), "db", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := c.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	raw := func(url, header, value string) {
		t.Helper()
		hc, err := rest.HTTPClientFor(adminConfig(t))
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, adminConfig(t).Host+url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			req.Header.Set(header, value)
		}
		resp, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	raw("/api/v1/namespaces/"+ns+"/secrets?access_token="+secret, "", "")
	raw("/api/v1/namespaces/"+ns+"/pods/none/exec?command=id&token="+secret, "", "")
	raw("/api/v1/namespaces/"+ns+"/secrets/none", "Sec-WebSocket-Protocol",
		"base64url.bearer.authorization.k8s.io."+secret+", v5.channel.k8s.io")
	raw("/api/v1/namespaces/"+ns+"/secrets/last", "Authorization", "Bearer "+secret)

	for _, want := range []func(*auditv1.Event) bool{
		func(e *auditv1.Event) bool { return e.Verb == "create" && e.ObjectRef.Resource == "secrets" },
		func(e *auditv1.Event) bool { return e.Verb == "get" && e.ObjectRef.Name == "db" },
		func(e *auditv1.Event) bool { return e.ObjectRef.Subresource == "token" },
		func(e *auditv1.Event) bool { return strings.Contains(e.RequestURI, "access_token=REDACTED") },
		func(e *auditv1.Event) bool {
			return strings.Contains(e.RequestURI, "token=REDACTED") && e.ObjectRef.Subresource == "exec"
		},
		func(e *auditv1.Event) bool { return e.ObjectRef.Name == "none" && e.ObjectRef.Resource == "secrets" },
		func(e *auditv1.Event) bool { return e.ObjectRef.Name == "last" },
	} {
		onRecord(t, auditLog(), ns, want)
	}
	text, err := os.ReadFile(auditLog())
	if err != nil {
		t.Fatal(err)
	}
	for name, hidden := range map[string]string{"secret": secret, "token": token.Status.Token} {
		if strings.Contains(string(text), hidden) {
			t.Errorf("the %s is on record", name)
		}
	}
	if strings.Contains(string(text), `"requestObject"`) || strings.Contains(string(text), `"responseObject"`) {
		t.Error("the built-in policy records bodies")
	}
}

// TestAuditIsQuiet proves that reads and heartbeats are not on record unless refused, and that names the server makes
// are.
func TestAuditIsQuiet(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	pods := c.CoreV1().Pods(ns)
	if _, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Get(t.Context(), "none", metav1.GetOptions{}); err == nil {
		t.Fatal("there is a pod none")
	}
	eve := clientOf(t, asUser(t, "eve-"+ns))
	if _, err := eve.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Fatal("eve may list pods")
	}
	generated := pod("")
	generated.GenerateName = "web-"
	made := createPod(t, c, ns, generated)
	e,
		_ := onRecord(t, auditLog(), ns,
		func(e *auditv1.Event) bool { return e.Verb == "create" && e.ObjectRef.Resource == "pods" })
	if got := e.Annotations[trail.GeneratedName]; got != made.Name {
		t.Errorf("the generated name is %q, want %s", got, made.Name)
	}
	var verbs []string
	files, err := trail.Files(auditLog())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trail.Read(files, trail.Filter{Namespace: ns, Resource: "pods"}, func(e trail.Event) error {
		verbs = append(verbs, fmt.Sprint(e.Verb, " ", e.ResponseStatus.Code))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"list 403", "create 201"}; !slices.Equal(verbs, want) {
		t.Errorf("on record: %v, want %v", verbs, want)
	}
}

// TestAuditOfStrangers proves that an unknown client's attempts are on record.
func TestAuditOfStrangers(t *testing.T) {
	config := rest.CopyConfig(adminConfig(t))
	config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData = nil, nil
	config.BearerToken = "wrong"
	// the first refusal of an address is told as it is
	config.Dial = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 77)}}).DialContext
	ns := "stranger-" + rand.String(6)
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(ns).List(t.Context(),
		metav1.ListOptions{}); err == nil {
		t.Fatal("accepted")
	}
	e,
		_ := onRecord(t, trail.Refused(auditLog()), ns,
		func(e *auditv1.Event) bool { return e.ResponseStatus.Code == http.StatusUnauthorized })
	if e.User.Username != "" || len(e.SourceIPs) == 0 {
		text, _ := json.Marshal(e)
		t.Errorf("%s", text)
	}
}
