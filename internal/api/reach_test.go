// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// reach is one row of the guide's table: an attempt, in a namespace with the pod "web", which is let in unless the
// answer is 403. What else becomes of it does not matter: there is no node behind this server.
type reach func(t *testing.T, c *kubernetes.Clientset, config *rest.Config, ns string) error

// dry are the options of writes that are only to be judged.
func dry() metav1.CreateOptions { return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}} }

func makes(change func(*corev1.Pod)) reach {
	return func(t *testing.T, c *kubernetes.Clientset, _ *rest.Config, ns string) error {
		p := pod("made")
		change(p)
		_, err := c.CoreV1().Pods(ns).Create(t.Context(), p, dry())
		return err
	}
}

func debugs(sc *corev1.SecurityContext) reach {
	return func(t *testing.T, c *kubernetes.Clientset, _ *rest.Config, ns string) error {
		body,
			err := json.Marshal(map[string]any{"spec": map[string]any{"ephemeralContainers": []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "tools:1",
				SecurityContext: sc}}}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.CoreV1().Pods(ns).Patch(t.Context(), "web", types.StrategicMergePatchType, body,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "ephemeralcontainers")
		return err
	}
}

// asks sends a request to a path, in which NS stands for the namespace.
func asks(verb, path string) reach {
	return func(t *testing.T, c *kubernetes.Clientset, _ *rest.Config, ns string) error {
		return c.CoreV1().RESTClient().Verb(verb).RequestURI(strings.ReplaceAll(path, "NS", ns)).Do(t.Context()).Error()
	}
}

func imageExecs(t *testing.T, _ *kubernetes.Clientset, config *rest.Config, ns string) error {
	_, err := execInto(t, config, "websocket", ns, "web", "stdout=true&command=ls&image=tools:1")
	status := statusOf(t, err)
	return &apierrors.StatusError{ErrStatus: status}
}

func relabels(t *testing.T, c *kubernetes.Clientset, _ *rest.Config, ns string) error {
	_, err := c.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func takes(t *testing.T, c *kubernetes.Clientset, _ *rest.Config, ns string) error {
	_, err := c.CoreV1().Services(ns).Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "takes"},
		Spec: corev1.ServiceSpec{ExternalIPs: []string{"198.51.100.7"}, Ports: []corev1.ServicePort{{Port: 80}}}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// reaches are the attempts of each row; one that is let in makes the row a yes.
func reaches() map[string][]reach {
	capabilities := func(names ...corev1.Capability) *corev1.SecurityContext {
		return &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: names}}
	}
	privileged := &corev1.SecurityContext{Privileged: new(true)}
	node := "/api/v1/nodes/node-1/proxy/"
	return map[string][]reach{
		"read logs":    {asks("GET", "/api/v1/namespaces/NS/pods/web/log")},
		"read secrets": {asks("GET", "/api/v1/namespaces/NS/secrets")},
		"run commands in containers (`exec`)": {asks("POST",
			"/api/v1/namespaces/NS/pods/web/exec?command=id&stdout=true"),
			asks("GET", "/api/v1/namespaces/NS/pods/web/exec?command=id&stdout=true"),
			asks("POST", "/api/v1/namespaces/NS/pods/web/attach?stdout=true")},
		"see the files of all containers of a pod (image exec)": {imageExecs},
		"add a debug container, profile `baseline`":             {debugs(nil)},
		"add a debug container, profile `general`":              {debugs(capabilities("SYS_PTRACE"))},
		"add a debug container, profile `netadmin`":             {debugs(capabilities("NET_ADMIN", "NET_RAW"))},
		"be root on the node: debug profile `sysadmin`": {debugs(privileged),
			debugs(capabilities("SYS_ADMIN"))},
		"be root on the node: a privileged pod, `hostPath`, `debug node/…`": {
			makes(func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext = privileged }),
			makes(func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "host",
					VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			}),
			makes(func(p *corev1.Pod) { p.Spec.HostPID = true }),
		},
		"take a port of the machine: `hostPort`": {makes(func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 39999}}
		})},
		"take the connections to an address from all pods and the machine: a Service's `externalIPs`": {takes},
		"create pods that are never evicted: priority class `system-…`": {makes(func(p *corev1.Pod) {
			p.Spec.PriorityClassName = "system-node-critical"
		}),
			makes(func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" })},
		"change a namespace's Pod Security level": {relabels},
		"read from the node's own API (`nodes/proxy`)": {asks("GET", node+"pods"), asks("GET", node+"logs/"),
			asks("GET", node+"metrics"), asks("GET", node+"stats/summary"), asks("GET", node+"configz"),
			asks("GET", node+"imageNames?image=sha256:00"), asks("GET", "/api/v1/nodes/node-1:10250/proxy/pods"),
			asks("GET", "/api/v1/proxy/nodes/node-1/pods"), asks("GET", "/api/v1/nodes/https:node-1:10250/proxy/pods")},
		"run commands through the node's own API": {asks("POST", node+"exec/NS/web/main?command=id"),
			asks("GET", node+"exec/NS/web/main?command=id"), asks("POST", node+"run/NS/web/main"),
			asks("POST", node+"imageExec/NS/web?image=a"), asks("POST", node+"attach/NS/web/main"),
			asks("POST", node+"portForward/NS/web"), asks("POST", node+"./EXEC/../exec/NS/web/main"),
			asks("POST", node+"%65xec/NS/web/main")},
		"run commands in other namespaces": {asks("POST", "/api/v1/namespaces/kube-system/pods/web/exec?command=id"),
			asks("POST", "/api/v1/namespaces/default/pods/web/exec?command=id")},
	}
}

// TestReach proves RS-11: the table of docs/guides/sharing.md, which says what a role amounts to on the node, row by
// row: each attempt by somebody with that role alone, in a namespace without a level and in one that is held to
// baseline. ATTACK A1, A2.
func TestReach(t *testing.T) {
	roles, rows := reachTable(t)
	tries := reaches()
	c := client(t)
	open := namespace(t, c)
	held := world{c: c, ns: namespace(t, c)}
	held.label(t, map[string]string{"pod-security.kubernetes.io/enforce": "baseline"})
	for _, ns := range []string{open, held.ns} {
		boundPod(t, c, ns, pod("web"))
	}
	for i, role := range roles {
		user := role + "-of-" + open
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		if role == "cluster-admin" {
			b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: ref,
				Subjects: userSubject(user)}
			if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			held.cleanUp(t, func(ctx context.Context) error {
				return c.RbacV1().ClusterRoleBindings().Delete(ctx, user, metav1.DeleteOptions{})
			})
		} else {
			bindTo(t, c, open, user, ref)
			bindTo(t, c, held.ns, user, ref)
		}
		config := person(t, shared.srv, user)
		theirs := clientOf(t, config)
		let := func(attempts []reach, ns string) (in, out int) {
			for _, try := range attempts {
				if apierrors.IsForbidden(try(t, theirs, config, ns)) {
					out++
				} else {
					in++
				}
			}
			return in, out
		}
		for row, cells := range rows {
			attempts := tries[row]
			if len(attempts) == 0 {
				t.Errorf("row %q of the guide is not tried", row)
				continue
			}
			got := "mixed"
			inOpen, outOpen := let(attempts, open)
			inHeld, outHeld := let(attempts, held.ns)
			switch {
			case inOpen+inHeld == 0:
				got = "no"
			case outOpen+outHeld == 0:
				got = "yes"
			case outOpen+inHeld == 0:
				got = "open"
			}
			if got != cells[i] {
				t.Errorf("%s, %s: %s (without a level %d of %d are let in, under baseline %d), the guide says %s", role,
					row, got, inOpen, inOpen+outOpen, inHeld, cells[i])
			}
		}
	}
	for row := range tries {
		if rows[row] == nil {
			t.Errorf("the guide says nothing about %q", row)
		}
	}
}

// reachTable reads the table from the guide: its roles, and the cells of each row.
func reachTable(t *testing.T) (roles []string, rows map[string][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/sharing.md")
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string][]string{}
	for line := range strings.Lines(string(text)) {
		var cells []string
		for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		switch {
		case cells[0] == "may, by role":
			for _, role := range cells[1:] {
				roles = append(roles, strings.Trim(role, "`"))
			}
		case len(roles) > 0 && len(cells) == len(roles)+1 && !strings.HasPrefix(cells[0], "---"):
			rows[cells[0]] = cells[1:]
		}
	}
	if len(roles) == 0 || len(rows) == 0 {
		t.Fatal("the guide has no table of what roles reach")
	}
	return roles, rows
}
