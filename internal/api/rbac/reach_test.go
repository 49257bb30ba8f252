// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestReachesNode proves RS-11: which roles amount to root on the node where every pod is let in.
func TestReachesNode(t *testing.T) {
	d := NewDefaults("kubelet")
	for name, want := range map[string]bool{"cluster-admin": true, "admin": true, "edit": true, "view": false, "debug": false, "debug-privileged": true} {
		i := slices.IndexFunc(d.ClusterRoles, func(r rbacv1.ClusterRole) bool { return r.Name == name })
		if got := ReachesNode(d.ClusterRoles[i].Rules); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	update := rbacv1.PolicyRule{Verbs: []string{"update"}, APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}}
	use := rbacv1.PolicyRule{Verbs: []string{"use"}, APIGroups: []string{debugGroup}, Resources: []string{DebugProfiles}, ResourceNames: []string{"netadmin"}}
	if ReachesNode([]rbacv1.PolicyRule{update, use}) {
		t.Error("netadmin is taken for root")
	}
	for _, c := range []struct {
		verb, group, resource string
		want                  bool
	}{
		{"create", "", "pods", true}, {"patch", "", "pods", false}, {"get", "apps", "deployments", false},
		{"create", "apps", "deployments", true}, {"patch", "apps", "deployments", true}, {"update", "apps", "statefulsets", true},
		{"create", "apps", "daemonsets", true}, {"create", "apps", "replicasets", true}, {"create", "batch", "jobs", true},
		{"update", "batch", "cronjobs", true}, {"create", "", "replicationcontrollers", true},
		{"delete", "apps", "deployments", false}, {"update", "apps", "deployments/scale", false}, {"create", "", "services", false},
	} {
		rule := rbacv1.PolicyRule{Verbs: []string{c.verb}, APIGroups: []string{c.group}, Resources: []string{c.resource}}
		if got := ReachesNode([]rbacv1.PolicyRule{rule}); got != c.want {
			t.Errorf("%s %s.%s: %t", c.verb, c.resource, c.group, got)
		}
	}
}
