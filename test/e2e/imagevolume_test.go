// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/wherryproject/wherry/test/images"
)

// PL-25: images as volumes: of inits, sidecars and mains at the same time, whole and by subPath, read-only; seen from image exec and
// from a debug container, and gone with the pod.
func TestImageVolumes(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	pod := k.up(`
metadata: {name: p}
spec:
  volumes:
  - {name: img, image: {reference: ` + images.BusyboxRef + `}}
  - {name: again, image: {reference: ` + images.BusyboxRef + `, pullPolicy: Never}}
  initContainers:
  - {name: i, command: [sh, -c, 'test -x /img/bin/busybox'], volumeMounts: [{name: img, mountPath: /img}]}
  - {name: s, restartPolicy: Always, command: [sh, -c, IDLE], volumeMounts: [{name: img, mountPath: /img}]}
  containers:
  - name: c
    command: [sh, -c, IDLE]
    volumeMounts: [{name: img, mountPath: /img}, {name: again, mountPath: /sub, subPath: bin}]
  - {name: d, command: [sh, -c, IDLE], volumeMounts: [{name: img, mountPath: /img}]}
  - {name: e, command: [sh, -c, IDLE], volumeMounts: [{name: img, mountPath: /img}]}
`)
	for _, c := range []string{"s", "c", "d", "e"} {
		k.says("p", c, "test -x /img/bin/busybox && echo there", "there")
		k.fails("p", c, "touch /img/x", "Read-only file system")
	}
	k.says("p", "c", "test -x /sub/busybox && echo there", "there")
	k.fails("p", "c", "touch /sub/x", "Read-only file system")
	k.shows("p", "test -x /c/c/img/bin/busybox && test -x /c/c/sub/busybox && echo there", "there")
	k.Delete("p")
	k.WaitGone(pod)
	k.AwaitNoTrace(pod)
}

// PL-25: an image that cannot be had, and a folder that is not in it, show in the container's status as its own image would; one that
// nobody mounts holds up nothing.
func TestImageVolumesMissing(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for name, c := range map[string]struct{ image, mount, reason, event, say string }{
		"never":   {`{reference: "wherry.test/none:1", pullPolicy: Never}`, "", "ErrImageNeverPull", "ErrImageNeverPull", "wherry.test/none:1"},
		"refused": {`{reference: "127.0.0.1:1/none:1"}`, "", "ImagePullBackOff", "Failed", "127.0.0.1:1/none:1"},
		"subpath": {`{reference: ` + images.BusyboxRef + `}`, ", subPath: none", "CreateContainerError", "Failed", "none"},
	} {
		k.pod(`
metadata: {name: ` + name + `}
spec:
  volumes: [{name: img, image: ` + c.image + `}]
  containers: [{name: c, command: [sh, -c, IDLE], volumeMounts: [{name: img, mountPath: /img` + c.mount + `}]}]
`)
		if got := k.WaitWaiting(name, "c", c.reason).State.Waiting.Message; !strings.Contains(got, c.say) {
			t.Errorf("PL-25 %s: the status says %q", name, got)
		}
		k.WaitEvent(name, c.event, c.say)
	}
	k.up(`
metadata: {name: unused}
spec:
  volumes: [{name: img, image: {reference: "127.0.0.1:1/none:1"}}]
  containers: [{name: c, command: [sh, -c, IDLE]}]
`)
}
