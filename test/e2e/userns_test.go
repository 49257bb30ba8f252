// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// PL-24: a pod with users of its own sees right owners in volumes of every kind, two such pods have no user in common, and
// what its root does, root of the machine does not. Debug containers and image exec work in it.
func TestUserNamespaces(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.configMap("c", map[string]string{"f": "text"})
	k.secret("s", map[string]string{"f": "text"})
	host := t.TempDir()
	spec := `
spec:
  hostUsers: false
  securityContext: {fsGroup: 2000}
  volumes:
  - {name: disk, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory}}
  - {name: c, configMap: {name: c}}
  - {name: s, secret: {secretName: s}}
  - {name: d, downwardAPI: {items: [{path: f, fieldRef: {fieldPath: metadata.name}}]}}
  - {name: h, hostPath: {path: ` + host + `}}
  containers:
  - name: c
    command: [sh, -c, IDLE]
    securityContext: {procMount: Unmasked}
    volumeMounts:
    - {name: disk, mountPath: /v/disk}
    - {name: disk, mountPath: /v/sub, subPath: below}
    - {name: memory, mountPath: /v/memory}
    - {name: c, mountPath: /v/c}
    - {name: s, mountPath: /v/s}
    - {name: d, mountPath: /v/d}
    - {name: h, mountPath: /v/h}
  - {name: m, command: [sh, -c, IDLE], securityContext: {runAsUser: 1000}}
`
	one := k.up("\nmetadata: {name: one}" + spec)
	k.up("\nmetadata: {name: two}" + spec)
	for name, want := range map[string]string{"/v/disk": "0 2000", "/v/sub": "0 2000", "/v/memory": "0 2000", "/v/c/f": "0 2000",
		"/v/s/f": "0 2000", "/v/d/f": "0 2000", "/v/h": "0 0", "/etc/hosts": "0 0", "/etc/resolv.conf": "0 0", "/dev/termination-log": "0 0",
		"/bin/sh": "0 0"} {
		k.says("one", "c", "stat -L -c '%u %g' "+name, want)
	}
	k.says("one", "c", "id -u; touch /v/disk/x /v/h/x && stat -c %u /v/disk/x", "0\n0")
	k.says("one", "m", "id -u; id -G", "1000\n1000 2000")
	k.says("one", "c", "mount | grep ' on /proc/' | wc -l", "0") // PL-29: unmasked
	k.says("one", "m", "mount | grep -q ' on /proc/' && echo masked", "masked")
	maps := map[string]bool{}
	for _, pod := range []string{"one", "two"} {
		fields := strings.Fields(k.sh(pod, "c", "cat /proc/self/uid_map"))
		if len(fields) != 3 || fields[0] != "0" || fields[1] == "0" || fields[2] != "65536" {
			t.Errorf("PL-24 %s: uid_map %q", pod, fields)
		}
		maps[strings.Join(fields, " ")] = true
	}
	if len(maps) != 2 {
		t.Errorf("PL-24: both pods have the users %v", maps)
	}
	if out, err := k.debug("one", "dbg", "cat /proc/self/uid_map"); err != nil || strings.Fields(out)[1] == "0" {
		t.Errorf("PL-24: a debug container has the users %q, %v", out, err)
	}
	k.shows("one", "id -u; stat -c %u /c/c/v/disk /c/c/bin/sh", "0\n0\n0")
	k.Delete("one")
	k.WaitGone(one)
	k.AwaitNoTrace(one)
}
