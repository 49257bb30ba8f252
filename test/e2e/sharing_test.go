// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/test/images"
)

// TestSharing: the commands of docs/guides/sharing.md do what it says (RBAC; EC-20, IX-07, RS-11 through kubectl and wherry).
func TestSharing(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	file := filepath.Join(t.TempDir(), "jane.yaml")
	group := k.Namespace + "-devs" // on a server that others share too
	k.told("kubeconfig", "--user", "jane", "--group", group, "--ttl", "8h", "--server", k.Config.Host, "-o", file)
	jane := *k
	of := *k.Space
	server := *k.Server
	server.Kubeconfig = file
	of.Server, jane.Space = &server, &of
	k.up(`{metadata: {name: web}, spec: {containers: [{name: main, command: [sh, -c, "echo hello; IDLE"]}]}}`)

	jane.KubectlFails("get", "pods").Says(`pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "` + k.Namespace + `"`)
	k.Kubectl("create", "rolebinding", "devs-edit", "--clusterrole", "edit", "--group", group)
	jane.Kubectl("get", "pods").Has("web")
	jane.Kubectl("exec", "web", "--", "echo", "there").Is("there")
	k.Kubectl("auth", "can-i", "create", "pods", "--as", "jane", "--as-group", group).Is("yes")
	jane.KubectlFails("auth", "can-i", "create", "roles").Is("no")
	jane.Kubectl("auth", "can-i", "--list").Has("pods/exec", "selfsubjectaccessreviews.authorization.k8s.io", "[create")
	jane.Kubectl("auth", "whoami").Has("jane", group)
	jane.KubectlFails("get", "nodes").Says("at the cluster scope")

	timeline := func() (string, error) {
		out, err := server.Wherry(k.ctx(), "timeline", "--kubeconfig", file, "-n", k.Namespace, "pod/web").CombinedOutput()
		return string(out), err
	}
	if out, err := timeline(); err != nil || !strings.Contains(out, "Ready after") {
		t.Errorf("the timeline, by the role edit: %v: %s", err, out)
	}
	k.Kubectl("delete", "rolebinding", "devs-edit")
	if out, err := timeline(); err == nil || !strings.Contains(out, "you may not read the timelines of pods in namespace "+k.Namespace+" (get pods/timeline)") {
		t.Errorf("the timeline without a role: %v: %s", err, out)
	}
	k.Kubectl("create", "rolebinding", "devs-edit", "--clusterrole", "edit", "--group", group)

	k.Kubectl("create", "role", "log-reader", "--verb", "get,list", "--resource", "pods,pods/log")
	k.Kubectl("create", "rolebinding", "joe-reads-logs", "--role", "log-reader", "--user", "joe")
	k.Kubectl("get", "rolebindings", "-o", "wide").Has("ClusterRole/edit", "Role/log-reader", "joe", group)
	k.Kubectl("logs", "web", "--as", "joe").Is("hello")
	k.KubectlFails("auth", "can-i", "create", "pods/exec", "--as", "joe").Is("no")
	k.KubectlFails("exec", "web", "--as", "joe", "--", "id").Says(`User "joe" cannot create resource "pods/exec"`)

	debug := []string{"debug", "web", "--image", images.BusyboxRef, "--target", "main", "-c", "dbg", "-q", "--", "true"}
	jane.KubectlFails(debug...).Says(`User "jane" cannot patch resource "pods/ephemeralcontainers" in API group "" in the namespace "` + k.Namespace + `"`)
	imageExec := func() (string, error) {
		out, err := server.Wherry(k.ctx(), "exec", "--kubeconfig", file, "-n", k.Namespace, "-m", "wherry.dev/toolbox", "web", "--", "ls", "/c").CombinedOutput()
		return string(out), err
	}
	if out, err := imageExec(); err == nil || !strings.Contains(out, `User "jane" cannot create resource "imageexecs" in API group "debug.wherry.dev"`) {
		t.Errorf("image exec without the right: %v: %s", err, out)
	}
	k.Kubectl("create", "rolebinding", "jane-debugs", "--clusterrole", "debug", "--user", "jane")
	jane.Kubectl(debug...)
	if out, err := imageExec(); err != nil || !strings.Contains(out, "main") {
		t.Errorf("image exec with the right: %v: %s", err, out)
	}
	root := []string{"debug", "web", "--image", images.BusyboxRef, "--profile", "sysadmin", "-c", "root", "-q", "--", "true"}
	right := `user "jane" cannot use resource "debugprofiles" named "sysadmin" in API group "debug.wherry.dev"`
	jane.KubectlFails(root...).Says(right, "debug-privileged")
	if out, err := server.Wherry(k.ctx(), "debug", "--kubeconfig", file, "-n", k.Namespace, "--profile", "sysadmin", "web", "--", "true").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), right) {
		t.Errorf("wherry debug with a profile that takes a right: %v: %s", err, out)
	}
	k.Kubectl("create", "rolebinding", "jane-debugs-more", "--clusterrole", "debug-privileged", "--user", "jane").Says("has no Pod Security level")
	jane.Kubectl(root...)
	k.Kubectl("delete", "rolebinding", "jane-debugs", "jane-debugs-more")
	jane.KubectlFails("debug", "web", "--image", "x", "-c", "again", "-q").Says("cannot patch")

	k.Kubectl("create", "serviceaccount", "robot")
	k.Kubectl("create", "rolebinding", "robot-views", "--clusterrole", "view", "--serviceaccount", k.Namespace+":robot")
	token := strings.TrimSpace(k.Kubectl("create", "token", "robot", "--duration", "1h").Out)
	k.Kubectl("auth", "can-i", "list", "pods", "--as", "system:serviceaccount:"+k.Namespace+":robot").Is("yes")
	if strings.Count(token, ".") != 2 {
		t.Errorf("token %q", token)
	}
	reconcile := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: log-reader, namespace: " + k.Namespace +
		"}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [watch]}]\n"
	if r := k.KubectlIn(reconcile, "auth", "reconcile", "-f", "-"); r.Code != 0 || !strings.Contains(r.Out, "reconciled") {
		t.Errorf("reconcile: %+v", r)
	}
	k.Kubectl("auth", "can-i", "watch", "pods", "--as", "joe").Is("yes")
	k.Kubectl("auth", "can-i", "get", "pods/web", "--subresource", "log", "--as", "joe").Is("yes")
	jane.KubectlFails("create", "rolebinding", "more", "--clusterrole", "admin", "--user", "jane").Says("cannot create resource \"rolebindings\"")
}
