// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// PL-27: variables from a file that an init container wrote, in inits, sidecars, mains, their hooks and debug containers, also
// where no container mounts the volume but the one that writes it.
func TestFileKeyRef(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	const key = `{volumeName: data, path: sub/config.env, key: `
	k.up(`
metadata: {name: p}
spec:
  volumes: [{name: data, emptyDir: {}}]
  initContainers:
  - name: write
    command: [sh, -c, "mkdir /data/sub; echo A=\\'one\\' > /data/sub/config.env; echo B=\\'two >> /data/sub/config.env; echo three\\' >> /data/sub/config.env"]
    volumeMounts: [{name: data, mountPath: /data}]
  - name: init
    command: [sh, -c, 'test "$X" = one']
    env: [{name: X, valueFrom: {fileKeyRef: ` + key + `A}}}]
  - name: side
    restartPolicy: Always
    command: [sh, -c, IDLE]
    env: [{name: X, valueFrom: {fileKeyRef: ` + key + `A}}}]
  containers:
  - name: c
    command: [sh, -c, IDLE]
    lifecycle: {postStart: {exec: {command: [sh, -c, 'echo "$X" > /posted']}}}
    env:
    - {name: X, valueFrom: {fileKeyRef: ` + key + `A}}}
    - {name: LINES, valueFrom: {fileKeyRef: ` + key + `B}}}
    - {name: Z, valueFrom: {fileKeyRef: ` + key + `C, optional: true}}}
    - {name: W, valueFrom: {fileKeyRef: {volumeName: data, path: none, key: A, optional: true}}}
    - {name: V, value: "$(X)-more"}
`)
	k.says("p", "side", "echo $X", "one")
	k.says("p", "c", `echo "$X/$LINES/${Z-unset}/${W-unset}/$V/$(cat /posted)"`, "one/two\nthree/unset/unset/one-more/one")
}

// PL-27: what is missing or malformed keeps the container waiting, with words; a file that is mended later is read then.
func TestFileKeyRefMissing(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for name, c := range map[string]struct{ write, say string }{
		"no-file":   {"true", `cannot read file`},
		"no-key":    {`echo "B='1'" > /data/f`, `key "A" not found`},
		"malformed": {`echo "A=1" > /data/f`, "couldn't parse env file"},
		"link":      {`echo "A='1'" > /data/g; ln -s /../../../../../../../../../etc/hostname /data/f`, "cannot read file"},
	} {
		k.pod(`
metadata: {name: ` + name + `}
spec:
  volumes: [{name: data, emptyDir: {}}]
  initContainers:
  - name: write
    command: [sh, -c, '` + strings.ReplaceAll(c.write, "'", "''") + `']
    volumeMounts: [{name: data, mountPath: /data}]
  containers:
  - name: c
    command: [sh, -c, IDLE]
    env: [{name: X, valueFrom: {fileKeyRef: {volumeName: data, path: f, key: A}}}]
`)
		k.WaitWaiting(name, "c", "CreateContainerConfigError")
		k.WaitEvent(name, "Failed", c.say)
	}
}
