// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
)

// roles: each may do what its words say, in its namespace, and nothing else (DA-04, DA-05): attempts that are refused.
func roles(t *testing.T, users map[string]user) {
	debug := func(rest string) string { return "debug " + rest + " -- id" }
	for _, c := range []struct{ who, line, why string }{
		{"eve", debug("-n shop web --target main"), "forbidden"},
		{"eve", debug("-n infra web"), "forbidden"},
		{"eve", "exec -n shop web -m wherry.dev/toolbox -- ls", "forbidden"},
		{"eve", "cp -c main shop/web:/tmp/f /tmp/none", "ClusterRole wherry-look"},
		{"eve", "cp -c main /etc/hosts shop/web:/tmp/f", "ClusterRole wherry-debug"},
		{"eve", "debug stop -n shop web 0123456789ab", "ClusterRole wherry-debug"},
		{"eve", "debug ls -n shop", "ClusterRole wherry-look"},
		{"eve", "debug ls -n shop web", "ClusterRole wherry-look"},
		{"eve", debug("-n infra deployment/front"), "ClusterRole wherry-look"},
		{"lou", debug("-n shop web --target main"), "wherry-debug"},
		{"lou", debug("-n shop web --target main --profile restricted"), "wherry-debug"},
		{"lou", debug("-n infra web"), "forbidden"},
		{"lou", "exec -n shop web -m wherry.dev/toolbox -- ls", "wherry-debug"},
		{"lou", "exec -n shop web -m wherry.dev/toolbox --writable -- ls", "wherry-debug"},
		{"lou", "cp -c main /etc/hosts shop/web:/tmp/f", "wherry-debug"},
		{"lou", "cp -c main infra/web:/etc/passwd /tmp/none", "forbidden"},
		{"lou", "debug stop -n shop web 0123456789ab", "forbidden"},
		{"ann", debug("-n shop web --target main --profile sysadmin"), "wherry-privileged"},
		{"ann", debug("-n shop web --target main --profile netadmin"), "wherry-privileged"},
		{"ann", debug("-n shop web --target main --profile legacy"), "wherry-privileged"},
		{"ann", debug("-n infra host"), "wherry-privileged"},
		{"ann", debug("-n infra host --profile restricted"), "wherry-privileged"},
		{"ann", "exec -n infra host -m wherry.dev/toolbox -- ls", "wherry-privileged"},
		{"ann", "cp infra/host:/etc/hosts /tmp/none", "wherry-privileged"},
		{"ann", debug("-n wherry-debug wherry-debug-agent"), "forbidden"},
		{"ann", debug("-n shop web --target main --ttl 1000h"), "ttl"},
		{"ann", debug("-n shop web --target main --memory 100Gi"), "memory"},
		{"ann", debug("-n shop web --target other"), "main"},
		{"ann", debug("-n shop gone"), "not found"},
		{"ann", "exec -n shop web -m not%an%image -- ls", "image"},
		{"ann", "debug stop -n shop web 0123456789ab", "0123456789ab"},
		{"pat", debug("-n shop web --target main"), "forbidden"},
		{"pat", "cp -c main shop/web:/tmp/f /tmp/none", "forbidden"},
	} {
		t.Run(c.who+" "+c.line, func(t *testing.T) {
			users[c.who].with(t).refused(c.why, strings.Fields(c.line)...)
		})
	}
	users["pat"].with(t).says("uid=0", "debug", "-n", "infra", "host", "--", "id")
	users["pat"].with(t).says("uid=0", "debug", "-n", "infra", "web", "--profile", "sysadmin", "--", "id")
	users["ann"].with(t).says("uid=1000", "debug", "-n", "shop", "web", "--target", "main", "--profile", "restricted", "--", "id")
}
