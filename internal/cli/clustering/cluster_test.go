// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cluster/manifest"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/controllers/namespace"
	"github.com/wherryproject/wherry/internal/release"
	"github.com/wherryproject/wherry/internal/store"
)

// cluster is a real API server, without the controllers that make pods: the test says how far they are.
type cluster struct {
	kubernetes.Interface
	*connection
	admin string // kubeconfigs
	jane  string // who has no rights
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	etcd, err := store.Start(ctx, store.Config{Dir: filepath.Join(dir, "etcd"), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := api.New(ctx, api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{etcd.Endpoint()}, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- srv.Run(ctx) }()
	<-srv.Ready()
	config, err := srv.As(rbac.NamespaceController)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(client, 0)
	spaces := namespace.New(client, metadata.NewForConfigOrDie(config), factory, log)
	factory.Start(ctx.Done())
	go func() { ended <- spaces.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		<-ended
		etcd.Close()
	})
	kubeconfig, err := srv.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{admin: filepath.Join(dir, "admin"), jane: filepath.Join(dir, "jane")}
	if err := os.WriteFile(c.admin, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	users, err := clientcmd.Load(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users.AuthInfos {
		u.Impersonate = "jane"
	}
	if err := clientcmd.WriteToFile(*users, c.jane); err != nil {
		t.Fatal(err)
	}
	where := &reach.Flags{}
	where.Kubeconfig = c.admin
	if c.connection, err = connect(where); err != nil {
		t.Fatal(err)
	}
	c.Interface = c.connection.Client
	return c
}

// lines calls hear with each line that is written.
type lines struct {
	mu   sync.Mutex
	all  bytes.Buffer
	hear func(line string)
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.all.Write(p)
	l.mu.Unlock()
	if l.hear != nil {
		for line := range strings.Lines(string(p)) {
			l.hear(strings.TrimSpace(line))
		}
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// call runs wherry cluster with arguments.
func call(t *testing.T, hear func(string), args ...string) (out, errs string, err error) {
	t.Helper()
	o, e := &lines{}, &lines{hear: hear}
	cmd := New(cmdline.Terminal{In: strings.NewReader(""), Out: o, Err: e}.Plain())
	cmd.SetArgs(args)
	cmd.SetOut(o)
	cmd.SetErr(e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

// rolls plays the controllers: what is applied runs as soon as it was waited for.
func (c *cluster) rolls(t *testing.T) func(line string) {
	ctx := t.Context()
	return func(line string) {
		var err error
		switch {
		case strings.HasPrefix(line, "apiservice/"):
			var d *appsv1.Deployment
			if d, err = c.AppsV1().Deployments("wherry-debug").Get(ctx, apiName, metav1.GetOptions{}); err == nil {
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2,
					AvailableReplicas: 2}
				_, err = c.AppsV1().Deployments("wherry-debug").UpdateStatus(ctx, d, metav1.UpdateOptions{})
			}
		case line == "API: 2 of 2 ready":
			var d *appsv1.DaemonSet
			if d, err = c.AppsV1().DaemonSets("wherry-debug").Get(ctx, agentName, metav1.GetOptions{}); err == nil {
				d.Status = appsv1.DaemonSetStatus{ObservedGeneration: d.Generation, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2,
					NumberAvailable: 1, NumberReady: 1}
				_, err = c.AppsV1().DaemonSets("wherry-debug").UpdateStatus(ctx, d, metav1.UpdateOptions{})
			}
		case strings.HasPrefix(line, "API: not available yet"):
			patch := `{"status":{"conditions":[{"type":"Available","status":"True","reason":"Passed","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
			_, err = c.objects.Resource(apiServices()).Patch(ctx, registrationName, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		}
		if err != nil {
			t.Errorf("after %q: %v", line, err)
		}
	}
}

func (c *cluster) node(t *testing.T, name string, ready corev1.ConditionStatus) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "linux"}}}
	n, err := c.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	if _, err = c.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) installedNow(t *testing.T) int {
	t.Helper()
	all, err := c.installed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// Installing, looking, upgrading and removing, against a real API server. (DA-05)
func TestInstallAndUninstall(t *testing.T) {
	c := newCluster(t)
	c.node(t, "there", corev1.ConditionTrue)
	c.node(t, "away", corev1.ConditionFalse)

	if _, _, err := call(t, nil, "status", "--kubeconfig", c.admin); !errors.Is(err, errNotInstalled) {
		t.Errorf("status before: %v", err)
	}
	_, errs, err := call(t, nil, "install", "--kubeconfig", c.jane)
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") ||
		!strings.Contains(err.Error(), "patch daemonsets.apps wherry-debug-agent in namespace wherry-debug") || errs != "" {
		t.Errorf("without rights: %v, %s", err, errs)
	}
	if n := c.installedNow(t); n != 0 {
		t.Fatalf("without rights %d objects were made", n)
	}

	c.blind(t)
	_, errs, err = call(t, c.rolls(t), "install", "--kubeconfig", c.admin)
	if err != nil || !strings.Contains(errs, "daemonset/wherry-debug-agent created") ||
		!strings.Contains(errs, "no agent runs on node away: it is not ready") {
		t.Fatalf("install: %v\n%s", err, errs)
	}
	if n := c.installedNow(t); n != 21 {
		t.Errorf("%d objects are installed", n)
	}
	c.rolesGive(t)
	c.fill(t)
	_, errs, err = call(t, nil, "install", "--kubeconfig", c.admin, "--wait=false")
	if err != nil || strings.Contains(errs, "created") || strings.Contains(errs, "configured") {
		t.Errorf("installed again: %v\n%s", err, errs)
	}
	c.filled(t)
	_, errs, err = call(t, nil, "install", "--kubeconfig", c.admin, "--wait=false", "--max-ttl", "1h")
	if err != nil || !strings.Contains(errs, "deployment/wherry-debug-api configured") || !strings.Contains(errs, "secret/wherry-debug-ca unchanged") {
		t.Errorf("with another value: %v\n%s", err, errs)
	}
	c.keeps(t)
	_, _, err = call(t, nil, "install", "--kubeconfig", c.admin, "--namespace", "other")
	if err == nil || !strings.Contains(err.Error(), "is installed already, in namespace wherry-debug") {
		t.Errorf("a second time: %v", err)
	}
	out, _, err := call(t, nil, "status", "--kubeconfig", c.admin)
	if !strings.Contains(out, "2 of 2 pods ready") || !strings.Contains(out, "away") {
		t.Errorf("status: %v, %s", err, out)
	}

	_, _, err = call(t, nil, "uninstall", "--kubeconfig", c.admin)
	if exit := (*cmdline.Exit)(nil); !errors.As(err, &exit) || exit.Code != cmdline.ExitUsage {
		t.Errorf("nobody can be asked: %v", err)
	}
	if _, _, err = call(t, nil, "uninstall", "--kubeconfig", c.jane, "--yes"); !apierrors.IsForbidden(err) {
		t.Errorf("uninstall without rights: %v", err)
	}
	_, errs, err = call(t, nil, "uninstall", "--kubeconfig", c.admin, "--yes")
	if n := c.installedNow(t); err != nil || n != 0 || !strings.Contains(errs, "namespace/wherry-debug deleted") {
		t.Errorf("uninstall: %v, %d are left\n%s", err, n, errs)
	}
	if _, err := c.CoreV1().Namespaces().Get(t.Context(), "wherry-debug", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v", err)
	}
	c.heldUp(t)
}

// heldUp proves that one who waits in vain until something is gone is told what it is, and not that he has called it
// off.
func (c *cluster) heldUp(t *testing.T) {
	t.Helper()
	held := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "held", Labels: manifest.Label().MatchLabels,
		Finalizers: []string{"example.com/held"}}}
	if _, err := c.CoreV1().Secrets("default").Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, _, err := call(t, nil, "uninstall", "--kubeconfig", c.admin, "--yes", "--timeout", "2s")
	if err == nil || !strings.Contains(err.Error(), "secret/held is not gone yet: "+errTime.Error()) {
		t.Errorf("held up: %v", err)
	}
	_, _, err = call(t, nil, "uninstall", "--kubeconfig", c.admin, "--yes", "--timeout", "0s")
	if exit := (*cmdline.Exit)(nil); !errors.As(err, &exit) || exit.Code != cmdline.ExitUsage {
		t.Errorf("without time: %v", err)
	}
}

// mayApply lets jane apply everything, and see nothing of it.
func (c *cluster) mayApply(t *testing.T) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "applies"}, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"create", "patch", "bind", "escalate"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "applies"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
		Kind: "ClusterRole", Name: "applies"}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}}}
	if _, err := c.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// blind proves that nobody waits for what he may not see.
func (c *cluster) blind(t *testing.T) {
	t.Helper()
	c.mayApply(t)
	_, _, err := call(t, nil, "install", "--kubeconfig", c.jane, "--timeout", "1s")
	if err == nil || !strings.Contains(err.Error(), "\nlist deployments.apps wherry-debug-api in namespace wherry-debug\n") ||
		!strings.Contains(err.Error(), "watch pods in namespace wherry-debug\n") || !strings.Contains(err.Error(), "--wait=false") {
		t.Errorf("blind: %v", err)
	}
	if n := c.installedNow(t); n != 0 {
		t.Fatalf("blind, %d objects were made", n)
	}
	where := &reach.Flags{}
	where.Kubeconfig = c.jane
	hers, err := connect(where)
	if err != nil {
		t.Fatal(err)
	}
	if nodes, err := hers.listNodes(t.Context()); err != nil || nodes != nil {
		t.Errorf("nodes that may not be listed: %v, %v", nodes, err)
	}
	if err := c.RbacV1().ClusterRoleBindings().Delete(t.Context(), "applies", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// rolesGive proves by the server's own judgement what the roles give to whom they are bound to, in that namespace alone.
// (DA-04)
func (c *cluster) rolesGive(t *testing.T) {
	t.Helper()
	for _, role := range []string{"wherry-look", "wherry-debug", "wherry-privileged"} {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: role}}}
		if _, err := c.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	agent := "system:serviceaccount:wherry-debug:" + agentName
	for _, q := range []struct {
		user, verb, resource, sub, name, namespace string
		want                                       bool
	}{
		{"wherry-look", "get", "pods", "files", "web", "default", true},
		{"wherry-look", "get", "pods", "files", "web", "kube-system", false},
		{"wherry-look", "create", "pods", "files", "web", "default", false},
		{"wherry-look", "create", "pods", "shell", "web", "default", false},
		{"wherry-debug", "create", "pods", "shell", "web", "default", true},
		{"wherry-debug", "delete", "pods", "sessions", "web", "default", true},
		{"wherry-debug", "use", "profiles", "", "general", "default", true},
		{"wherry-debug", "use", "profiles", "", "sysadmin", "default", false},
		{"wherry-debug", "use", "profiles", "", wire.ProfileHost, "default", false},
		{"wherry-privileged", "use", "profiles", "", wire.ProfileHost, "default", true},
		{"wherry-privileged", "use", "profiles", "", "general", "kube-system", false},
		{agent, "get", "pods", "files", "web", "default", false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: q.user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: q.namespace, Verb: q.verb, Group: wire.Group,
				Version: wire.Version, Resource: q.resource, Subresource: q.sub, Name: q.name}}}
		got, err := c.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil || got.Status.Allowed != q.want {
			t.Errorf("%+v: %v, %+v", q, err, got.Status)
		}
	}
}

const caBundle = "LS0tLS1CRUdJTg=="

// fill does what the API does with what is left to it.
func (c *cluster) fill(t *testing.T) {
	t.Helper()
	patch := []byte(`{"data":{"tls.crt":"` + caBundle + `"}}`)
	_, err := c.CoreV1().Secrets("wherry-debug").Patch(t.Context(), "wherry-debug-ca", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// filled proves that it is still there.
func (c *cluster) filled(t *testing.T) {
	t.Helper()
	s, err := c.CoreV1().Secrets("wherry-debug").Get(t.Context(), "wherry-debug-ca", metav1.GetOptions{})
	if err != nil || len(s.Data["tls.crt"]) == 0 {
		t.Errorf("the API's Secret was emptied: %v, %v", s.Data, err)
	}
}

// What somebody else has applied is not taken over by surprise, and nothing is changed then.
func TestInstallBesideHelm(t *testing.T) {
	c := newCluster(t)
	usual, err := manifest.Defaults()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Objects(usual, release.Version())
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{connection: c.connection, objects: objects}
	at, _, err := p.of(objects[0].GroupVersionKind(), "")
	if err != nil {
		t.Fatal(err)
	}
	theirs := objects[0].DeepCopy()
	theirs.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	if _, err := at.Apply(t.Context(), theirs.GetName(), theirs, metav1.ApplyOptions{FieldManager: "helm"}); err != nil {
		t.Fatal(err)
	}
	_, _, err = call(t, nil, "install", "--kubeconfig", c.admin, "--wait=false")
	if err == nil || !strings.Contains(err.Error(), `conflict with "helm"`) || !strings.Contains(err.Error(), "--force-conflicts") {
		t.Errorf("%v", err)
	}
	if n := c.installedNow(t); n != 0 {
		t.Errorf("%d objects were made", n)
	}
	if _, _, err = call(t, nil, "install", "--kubeconfig", c.admin, "--wait=false", "--force-conflicts"); err != nil {
		t.Error(err)
	}
	if n := c.installedNow(t); n != len(objects) {
		t.Errorf("%d objects are there, want %d", n, len(objects))
	}
	c.mayApply(t)
	_, errs, err := call(t, nil, "install", "--kubeconfig", c.jane, "--wait=false")
	if err != nil || !strings.Contains(errs, "secret/wherry-debug-ca applied") || strings.Contains(errs, "created") ||
		!strings.Contains(errs, "you may not read the values of earlier installs") {
		t.Errorf("by whom sees nothing: %v\n%s", err, errs)
	}
}
