// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	oldstream "k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	clientremote "k8s.io/client-go/tools/remotecommand"
	spdydial "k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/store"
)

// Refusals are in the words that kubectl users know.
func TestForbiddenWords(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	nobody := clientOf(t, person(t, shared.srv, "nobody"))
	ctx := t.Context()
	_, err := nobody.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	forbidden(t, "list", err,
		`pods is forbidden: User "nobody" cannot list resource "pods" in API group "" in the namespace "`+ns+`"`)
	_, err = nobody.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
	forbidden(t, "get", err,
		`nodes "n1" is forbidden: User "nobody" cannot get resource "nodes" in API group "" at the cluster scope`)
	_, err = nobody.CoreV1().Pods(ns).GetLogs("p", &corev1.PodLogOptions{}).Stream(ctx)
	forbidden(t, "log", err, `cannot get resource "pods/log" in API group ""`)
	err = nobody.Discovery().RESTClient().Get().AbsPath("/metrics").Do(ctx).Error()
	forbidden(t, "path", err, `User "nobody" cannot get path "/metrics"`)
	if _, err := nobody.Discovery().ServerVersion(); err != nil {
		t.Errorf("version: %v", err)
	}
	lost := "lost"
	bindTo(t, c, ns, lost, rbacv1.RoleRef{Kind: "Role", Name: "gone"})
	_, err = clientOf(t, person(t, shared.srv, lost)).CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	forbidden(t, "a role that is not there", err, `in the namespace "`+ns+
		`": RBAC: role.rbac.authorization.k8s.io "gone" not found`)
}

// A right can be used as soon as it is given and is gone as soon as it is taken, whichever object gives or takes it:
// every write is in the view before its writer has an answer.
func TestReadYourWrites(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	jane := clientOf(t, person(t, shared.srv, "ryw"))
	ctx := t.Context()
	list := func() error {
		_, err := jane.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		return err
	}
	roles, bindings := c.RbacV1().Roles(ns), c.RbacV1().RoleBindings(ns)
	for i := range 20 {
		grant(t, c, ns, "ryw", "list pods")
		fine(t, fmt.Sprintf("round %d: after the binding", i), list())
		role, err := roles.Get(ctx, "ryw", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		role.Rules = rulesOf("get pods")
		if role, err = roles.Update(ctx, role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		forbidden(t, "after the role has changed", list())
		role.Rules = rulesOf("list pods")
		if _, err = roles.Update(ctx, role, metav1.UpdateOptions{DryRun: []string{"All"}}); err != nil {
			t.Fatal(err)
		}
		forbidden(t, "after a dry run", list())
		if _, err = roles.Update(ctx, role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		fine(t, "after the role has changed back", list())
		if err := bindings.Delete(ctx, "ryw", metav1.DeleteOptions{DryRun: []string{"All"}}); err != nil {
			t.Fatal(err)
		}
		fine(t, "after a dry run of the deletion", list())
		if i%2 == 0 {
			err = bindings.Delete(ctx, "ryw", metav1.DeleteOptions{})
		} else {
			err = bindings.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		forbidden(t, "after the deletion", list())
		if err := roles.Delete(ctx, "ryw", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Two servers on one store: what one writes the other hears of, and both have the same roles after a restart; a default
// role is given back what it lacks, unless its owner has said not to.
func TestRolesOutliveServers(t *testing.T) {
	dir := t.TempDir()
	etcd, err := store.Start(t.Context(), store.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { fine(t, "stop of etcd", etcd.Close()) }()
	cfg := api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{etcd.Endpoint()}}
	a, stopA := serve(t, cfg)
	b, stopB := serve(t, cfg)
	ctx := t.Context()
	c := clientOf(t, configOf(t, a))
	if err := awaitAccess(t, clientOf(t, person(t, b, "jane")), func() error {
		bindTo(t, c, "default", "jane", rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	stopB()

	roles := c.RbacV1().ClusterRoles()
	for _, name := range []string{"system:aggregate-to-view", "system:kube-scheduler", "system:basic-user"} {
		role, err := roles.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		role.Rules = rulesOf("get widgets.example.com")
		if name == "system:kube-scheduler" {
			role.Annotations[rbacv1.AutoUpdateAnnotationKey] = "false"
		}
		if _, err := roles.Update(ctx, role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := roles.Delete(ctx, "system:discovery", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.RbacV1().ClusterRoleBindings().Delete(ctx, "system:discovery", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	forbiddenDiscovery := clientOf(t,
		person(t, a, "jane")).Discovery().RESTClient().Get().AbsPath("/api").Do(ctx).Error()
	forbidden(t, "discovery without its role", forbiddenDiscovery)
	stopA()

	again, stop := serve(t, cfg)
	defer stop()
	c = clientOf(t, configOf(t, again))
	jane := clientOf(t, person(t, again, "jane"))
	if _, err := jane.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("a binding after a restart: %v", err)
	}
	if err := jane.Discovery().RESTClient().Get().AbsPath("/api").Do(ctx).Error(); err != nil {
		t.Errorf("discovery after a restart: %v", err)
	}
	for name, want := range map[string]bool{"system:aggregate-to-view": true, "system:basic-user": true,
		"system:kube-scheduler": false} {
		role, err := c.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		kept := role.Rules[0].APIGroups[0] == "example.com"
		if restored := len(role.Rules) > 1; restored != want || !kept {
			t.Errorf("%s: %+v", name, role.Rules)
		}
	}
}

// awaitAccess waits until somebody may list pods: by a watch that is tried again when it is refused, since nobody tells
// of rights.
func awaitAccess(t *testing.T, c *kubernetes.Clientset, after func() error) error {
	t.Helper()
	if _, err := c.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		return fmt.Errorf("before: %w", err)
	}
	if err := after(); err != nil {
		return err
	}
	for {
		_, err := c.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err == nil || !apierrors.IsForbidden(err) {
			return err
		}
	}
}

// stream opens exec, attach or port-forward as a real client does and returns the refusal, or nil if there was none by
// authorisation.
func stream(t *testing.T, config *rest.Config, way, ns, pod, sub string) error {
	t.Helper()
	u, err := url.Parse(config.Host + "/api/v1/namespaces/" + ns + "/pods/" + pod + "/" + sub +
		"?stdout=true&command=true&container=main")
	if err != nil {
		t.Fatal(err)
	}
	if sub == "portforward" {
		err = dialForward(t, config, way, u)
	} else {
		var e clientremote.Executor
		if way == "spdy" {
			e, err = clientremote.NewSPDYExecutor(config, http.MethodPost, u)
		} else {
			e, err = clientremote.NewWebSocketExecutor(config, http.MethodGet, u.String())
		}
		if err != nil {
			t.Fatal(err)
		}
		err = e.StreamWithContext(t.Context(), clientremote.StreamOptions{Stdout: &strings.Builder{}})
	}
	return refusedOnly(err)
}

func dialForward(t *testing.T, config *rest.Config, way string, u *url.URL) error {
	t.Helper()
	u.RawQuery = ""
	var dialer oldstream.Dialer
	if way == "spdy" {
		transport, upgrader, err := spdydial.RoundTripperFor(config)
		if err != nil {
			t.Fatal(err)
		}
		dialer = spdydial.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u)
	} else {
		tunnel, err := portforward.NewSPDYOverWebsocketDialer(u, config)
		if err != nil {
			t.Fatal(err)
		}
		dialer = tunnel
	}
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err == nil {
		connection.Close()
	}
	return err
}

func refusedOnly(err error) error {
	var upgrade *httpstream.UpgradeFailureError
	var old *oldstream.UpgradeFailureError
	if errors.As(err, &upgrade) {
		err = upgrade.Cause
	} else if errors.As(err, &old) {
		err = old.Cause
	}
	var status *apierrors.StatusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status) && status.ErrStatus.Code == http.StatusForbidden:
		return status
	case strings.Contains(err.Error(), "is forbidden: User"): // SPDY clients know the text only
		return apierrors.NewForbidden(corev1.Resource("pods"), "", err)
	}
	return nil
}

// EC-20 IX-07: exec, attach and port-forward each need create on their own subresource, with a POST (SPDY) as with the
// GET that a WebSocket begins with; log needs get on its own; nothing stands for anything else.
func TestEachSubresourceIsItsOwn(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	patch := func(config *rest.Config) error {
		_, err := clientOf(t, config).CoreV1().Pods(ns).Patch(t.Context(), "p",
			"application/strategic-merge-patch+json",
			[]byte(`{"spec":{"ephemeralContainers":[{"name":"d","image":"tools:1"}]}}`),
			metav1.PatchOptions{DryRun: []string{"All"}}, "ephemeralcontainers")
		return err
	}
	log := func(config *rest.Config) error {
		stream, err := clientOf(t, config).CoreV1().Pods(ns).GetLogs("p",
			&corev1.PodLogOptions{Container: "main"}).Stream(t.Context())
		if err == nil {
			stream.Close()
		}
		return refusedOnly(err)
	}
	ways := map[string]func(*rest.Config) error{"pods/ephemeralcontainers": patch, "pods/log": log}
	for _, way := range []string{"spdy", "websocket"} {
		for _, sub := range []string{"exec", "attach", "portforward"} {
			ways["pods/"+sub+" "+way] = func(config *rest.Config) error { return stream(t, config, way, ns, "p", sub) }
		}
	}
	for i, right := range []string{"create pods/exec", "create pods/attach", "create pods/portforward", "get pods/log",
		"get,patch pods/ephemeralcontainers", "get,list,watch pods,pods/exec,pods/attach,pods/portforward"} {
		t.Run(right, func(t *testing.T) {
			who := grant(t, c, ns, fmt.Sprint("sub", i), right)
			config := person(t, shared.srv, who)
			resource := strings.Fields(right)[1]
			for name, do := range ways {
				err := do(config)
				if strings.Fields(name)[0] == resource {
					fine(t, name, err)
					continue
				}
				verb := "create"
				switch name {
				case "pods/log":
					verb = "get"
				case "pods/ephemeralcontainers":
					verb = "patch"
				}
				forbidden(t, name, err, fmt.Sprintf("User %q cannot %s resource %q", who, verb,
					strings.Fields(name)[0]))
			}
		})
	}
}

// IX-07 EC-20 DC-03: image exec needs create on pods/exec and its own right, exec++ create on pods/exec and update of
// pods/ephemeralcontainers. Role debug has all of it.
func TestDebugRoles(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	const imageExec = "stdout=true&image=tools:1&command=x"
	who := map[string]string{
		"exec":      grant(t, c, ns, "dr-exec", "create pods/exec"),
		"imageexec": grant(t, c, ns, "dr-image", "create pods/exec", "create imageexecs.debug.wherry.dev"),
		"own only":  grant(t, c, ns, "dr-own", "create imageexecs.debug.wherry.dev"),
		"exec++":    grant(t, c, ns, "dr-debug", "create pods/exec", "update pods/ephemeralcontainers"),
		"other pod": grant(t, c, ns, "dr-other", "create pods/exec", "create imageexecs.debug.wherry.dev another"),
		"role":      "dr-role", "admin": "dr-admin",
	}
	bindTo(t, c, ns, "dr-role", rbacv1.RoleRef{Kind: "ClusterRole", Name: "debug"})
	bindTo(t, c, ns, "dr-admin", rbacv1.RoleRef{Kind: "ClusterRole", Name: "admin"})
	for _, test := range []struct {
		who, query, refused string
	}{
		{"exec", imageExec, `cannot create resource "imageexecs" in API group "debug.wherry.dev"`},
		{"exec", session, `cannot update resource "pods/ephemeralcontainers" in API group ""`},
		{"own only", imageExec, `cannot create resource "pods/exec" in API group ""`},
		{"other pod", imageExec, `cannot create resource "imageexecs"`},
		{"imageexec", imageExec, ""},
		{"imageexec", session, `cannot update resource "pods/ephemeralcontainers"`},
		{"exec++", imageExec, `cannot create resource "imageexecs"`},
		{"exec++", session, ""},
		{"admin", imageExec, `cannot create resource "imageexecs"`},
		{"admin", session, `cannot update resource "pods/ephemeralcontainers"`},
		{"role", imageExec, ""},
		{"role", strings.ReplaceAll(session, "=debug", "=second"), ""},
	} {
		for _, way := range []string{"websocket", "spdy"} {
			query := test.query
			if way == "spdy" {
				query = strings.Replace(query, "ContainerName=", "ContainerName=spdy-", 1)
			}
			before := len(podNow(t, c, ns, "p").Spec.EphemeralContainers) + len(recordsOf(t, ns, "p"))
			_, err := execInto(t, person(t, shared.srv, who[test.who]), way, ns, "p", query)
			if test.refused == "" {
				fine(t, test.who+" "+way+" "+query, err)
				continue
			}
			forbidden(t, test.who+" "+way+" "+query, refusedOnly(err), test.refused)
			if after := len(podNow(t, c, ns, "p").Spec.EphemeralContainers) +
				len(recordsOf(t, ns, "p")); after != before {
				t.Errorf("%s %s: refused, and something was made all the same", test.who, query)
			}
		}
	}
}

// Proxies: the verb is the method's, and each kind of proxy is its own right.
func TestProxyVerbs(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	boundPod(t, c, ns, pod("p"))
	reader := clientOf(t, person(t, shared.srv, grant(t, c, ns, "px-get", "get pods/proxy,services/proxy")))
	writer := clientOf(t, person(t, shared.srv, grant(t, c, ns, "px-create", "create pods/proxy")))
	do := func(c *kubernetes.Clientset, verb, what string) error {
		path := "/api/v1/namespaces/" + ns + "/" + what
		if strings.HasPrefix(what, "nodes/") {
			path = "/api/v1/" + what
		}
		return refusedOnly(c.CoreV1().RESTClient().Verb(verb).AbsPath(path).Do(t.Context()).Error())
	}
	fine(t, "get", do(reader, "GET", "pods/p/proxy/x"))
	forbidden(t, "post", do(reader, "POST", "pods/p/proxy/x"), `cannot create resource "pods/proxy"`)
	forbidden(t, "delete", do(reader, "DELETE", "pods/p/proxy/x"), `cannot delete resource "pods/proxy"`)
	fine(t, "a service", do(reader, "GET", "services/s/proxy/x"))
	forbidden(t, "get of a writer", do(writer, "GET", "pods/p/proxy/x"), `cannot get resource "pods/proxy"`)
	fine(t, "post", do(writer, "POST", "pods/p/proxy/x"))
	forbidden(t, "a node", do(reader, "GET", "nodes/n/proxy/pods"),
		`cannot get resource "nodes/proxy" in API group "" at the cluster scope`)

	// Who may read a node's API does not run commands through it.
	const who = "px-nodes"
	if _, err := c.RbacV1().ClusterRoles().Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: who}, Rules: rulesOf("get nodes/proxy")},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(),
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: who}, Subjects: userSubject(who),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: who}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	nodes := clientOf(t, person(t, shared.srv, who))
	fine(t, "a node's pods", do(nodes, "GET", "nodes/n/proxy/pods"))
	for _, way := range []string{"exec/ns/p/c", "attach/ns/p/c", "portForward/ns/p", "imageExec/ns/p", "/exec/ns/p/c",
		"pods/../exec/ns/p/c", "%65xec/ns/p/c"} {
		raw := nodes.CoreV1().RESTClient().Get().RequestURI("/api/v1/nodes/n/proxy/" + way + "?command=id")
		forbidden(t, "a node's "+way, refusedOnly(raw.Do(t.Context()).Error()), `cannot create resource "nodes/proxy"`)
	}
}
