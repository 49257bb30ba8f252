// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// PL-29: with supplementalGroupsPolicy Strict a container has the groups that the pod names, and none that the image gives its user;
// debug containers too. The node says that it can.
func TestGroupsPolicy(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	if f := k.nodeNow().Status.Features; f == nil || f.SupplementalGroupsPolicy == nil || !*f.SupplementalGroupsPolicy {
		t.Errorf("PL-29 the node's features are %+v", f)
	}
	groups := map[string]string{}
	for _, policy := range []string{"Merge", "Strict"} {
		name := strings.ToLower(policy)
		k.up(`
metadata: {name: ` + name + `}
spec:
  securityContext: {supplementalGroups: [5000], fsGroup: 5001, supplementalGroupsPolicy: ` + policy + `}
  containers: [{name: c, command: [sh, -c, IDLE]}]
`)
		groups[policy] = k.sh(name, "c", "grep Groups /proc/1/status")
		if u := k.Get(name).Status.ContainerStatuses[0].User; u == nil || u.Linux == nil || len(u.Linux.SupplementalGroups) < 2 {
			t.Errorf("PL-29 %s: the status says %+v", policy, u)
		}
	}
	if got := strings.Fields(groups["Strict"]); strings.Join(got, " ") != "Groups: 0 5000 5001" {
		t.Errorf("PL-29 Strict: %v", got)
	}
	if !strings.Contains(groups["Merge"], "5000") {
		t.Errorf("PL-29 Merge: %s", groups["Merge"])
	}
}
