// SPDX-License-Identifier: Apache-2.0

package debugapi_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/cluster/debugapi"
	"github.com/wherryproject/wherry/internal/cluster/debugapi/rights"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// chain is debugging as it is installed in a cluster: the aggregated API behind a real API server, and an agent that
// stands in for one, whose certificate comes by the real way. It lasts as long as one test; tests with one do not run
// beside each other, for a cluster has one APIService of the name.
type chain struct {
	admin     *kubernetes.Clientset
	namespace string // of the API
	node      string
	server    *debugapi.Server
	agent     *standIn
	stop      func() error // ends the API
}

const agentsLabel = "app.kubernetes.io/name"

func newChain(t *testing.T) *chain {
	t.Helper()
	config := adminConfig(t)
	c := &chain{admin: clientOf(t, config), namespace: "wherry-debug-" + rand.String(5), node: "node-" + rand.String(5)}
	c.install(t, config)
	c.agent = newStandIn(t)
	c.serve(t, config)
	c.agent.join(t, c)
	return c
}

// install makes what the manifest would.
func (c *chain) install(t *testing.T, config *rest.Config) {
	t.Helper()
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}},
		metav1.CreateOptions{}))
	for _, name := range []string{"wherry-debug-api", "wherry-debug-agent", "default"} {
		must(c.admin.CoreV1().ServiceAccounts(c.namespace).Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
	}
	must(c.admin.CoreV1().Secrets(c.namespace).Create(ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "wherry-debug-ca"}}, metav1.CreateOptions{}))
	c.grant(t, "wherry-debug-api", "", "get pods,persistentvolumeclaims,persistentvolumes", "create subjectaccessreviews.authorization.k8s.io",
		"create,patch events", "get,list,watch namespaces",
		"get,list,watch certificatesigningrequests.certificates.k8s.io",
		"update certificatesigningrequests/approval,certificatesigningrequests/status.certificates.k8s.io",
		"approve,sign signers.certificates.k8s.io debug.wherry.dev/agent",
		"get,patch,update apiservices.apiregistration.k8s.io v1alpha1.debug.wherry.dev",
		"get,list,watch validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings.admissionregistration.k8s.io")
	c.grant(t, "wherry-debug-api", c.namespace, "get,list,watch pods", "get,update secrets wherry-debug-ca")
	c.grant(t, "wherry-debug-api", "kube-system", "get,list,watch configmaps extension-apiserver-authentication")
	c.grant(t, "wherry-debug-agent", "", "create,get,list,watch certificatesigningrequests.certificates.k8s.io")
	regs, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	must(regs.ApiregistrationV1().APIServices().Create(ctx, &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.debug.wherry.dev"},
		Spec: apiregistrationv1.APIServiceSpec{Group: wire.Group, Version: wire.Version, GroupPriorityMinimum: 1000,
			VersionPriority: 10, Service: &apiregistrationv1.ServiceReference{Namespace: c.namespace,
				Name: "wherry-debug-api", Port: ptr.To[int32](443)}}}, metav1.CreateOptions{}))
	t.Cleanup(func() {
		if err := regs.ApiregistrationV1().APIServices().Delete(context.Background(), "v1alpha1.debug.wherry.dev",
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// serve runs the API by its own service account, and waits until it is handed requests.
func (c *chain) serve(t *testing.T, admin *rest.Config) {
	t.Helper()
	conf := debugapi.Defaults()
	conf.Cluster = c.account(t, admin, "wherry-debug-api", nil)
	conf.Namespace, conf.BindAddress, conf.Port, conf.AgentPort = c.namespace, "127.0.0.1", 0, c.agent.port()
	conf.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	var err error
	if c.server, err = debugapi.New(t.Context(), conf); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.server.Run(ctx) }()
	c.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "wherry-debug-api"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
		Ports: []corev1.ServicePort{{Port: int32(c.server.Port())}}}}
	if _, err := c.admin.CoreV1().Services(c.namespace).Create(t.Context(), service,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	regs, err := clientset.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	services := regs.ApiregistrationV1().APIServices()
	s, err := services.Patch(t.Context(), "v1alpha1.debug.wherry.dev", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"service":{"port":%d}}}`, c.server.Port()), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := services.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + s.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	patience := time.After(time.Minute)
	for {
		select {
		case e := <-w.ResultChan():
			s, ok := e.Object.(*apiregistrationv1.APIService)
			if !ok {
				t.Fatalf("the watch said %v", e)
			}
			for _, cond := range s.Status.Conditions {
				if cond.Type == apiregistrationv1.Available && cond.Status == apiregistrationv1.ConditionTrue {
					return
				}
				t.Logf("APIService: %s %s", cond.Reason, cond.Message)
			}
		case err := <-done:
			t.Fatalf("the API has ended: %v", err)
		case <-patience:
			t.Fatal("the APIService is not available within a minute")
		}
	}
}

// account is a service account with a token, bound to a pod if there is one.
func (c *chain) account(t *testing.T, admin *rest.Config, name string, pod *corev1.Pod) *rest.Config {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1",
			Name: pod.Name, UID: pod.UID}
	}
	request, err := c.admin.CoreV1().ServiceAccounts(c.namespace).CreateToken(t.Context(), name, request,
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken, config.QPS = request.Status.Token, -1
	return config
}

// grant gives a service account rules, "verb,verb resource,resource.group [name]", in a namespace or everywhere.
func (c *chain) grant(t *testing.T, account, namespace string, rules ...string) {
	t.Helper()
	name := account + "-" + rand.String(5)
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: c.namespace, Name: account}}
	c.give(t, name, namespace, subjects, rulesOf(rules...))
}

func (c *chain) give(t *testing.T, name, namespace string, subjects []rbacv1.Subject, rules []rbacv1.PolicyRule) {
	t.Helper()
	rbac, meta := c.admin.RbacV1(), metav1.ObjectMeta{Name: name}
	var err error
	if namespace == "" {
		if _, err = rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
			metav1.CreateOptions{}); err == nil {
			_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
				Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
					Name: name}},
				metav1.CreateOptions{})
		}
	} else if _, err = rbac.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules},
		metav1.CreateOptions{}); err == nil {
		_, err = rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
			Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}},
			metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func rulesOf(texts ...string) (rules []rbacv1.PolicyRule) {
	for _, text := range texts {
		f := strings.Fields(text)
		resources, group, _ := strings.Cut(f[1], ".")
		r := rbacv1.PolicyRule{Verbs: strings.Split(f[0], ","), APIGroups: []string{group},
			Resources: strings.Split(resources, ",")}
		if len(f) > 2 {
			r.ResourceNames = strings.Split(f[2], ",")
		}
		rules = append(rules, r)
	}
	return rules
}

// roleRules are those of the ClusterRoles that come with the API.
func roleRules(role string) []string {
	look := []string{"get pods/files,pods/evidence,pods/sessions.debug.wherry.dev"}
	debug := append(look, "get,create pods/shell,pods/exec.debug.wherry.dev", "create pods/files.debug.wherry.dev",
		"delete pods/sessions.debug.wherry.dev", "use profiles.debug.wherry.dev restricted,baseline,general")
	switch role {
	case rights.RoleLook:
		return look
	case rights.RoleDebug:
		return debug
	}
	return append(debug, "use profiles.debug.wherry.dev netadmin,sysadmin,legacy,host")
}

// somebody is a person who has a role in a namespace, and nothing else.
func (c *chain) somebody(t *testing.T, namespace, role string) (config *rest.Config, name string) {
	t.Helper()
	name = "user-" + rand.String(6)
	c.give(t, name, namespace, []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}},
		rulesOf(roleRules(role)...))
	return person(t, name), name
}

// place makes a namespace for one test.
func (c *chain) place(t *testing.T) string {
	t.Helper()
	name := "shop-" + rand.String(5)
	if _, err := c.admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.admin.CoreV1().ServiceAccounts(name).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// pod makes a pod that runs on a node; a nil change makes an ordinary one.
func (c *chain) pod(t *testing.T, namespace, name, node string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "main", Image: "registry.example/app:1"}}}}
	if change != nil {
		change(p)
	}
	p, err := c.admin.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if node == "" {
		return p
	}
	if err := c.admin.CoreV1().Pods(namespace).Bind(t.Context(),
		&corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name},
			Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p, err = c.admin.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// path is that of a subresource of a pod.
func path(namespace, pod, sub string) string {
	return fmt.Sprintf("%s/namespaces/%s/pods/%s/%s", wire.Base, namespace, pod, sub)
}

func portOf(l net.Listener) int {
	a, _ := l.Addr().(*net.TCPAddr)
	return a.Port
}
