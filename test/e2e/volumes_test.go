// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// PL-05: emptyDir on disk and in memory, with its size, shared by the pod's containers and kept over restarts.
func TestVolumeEmptyDir(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`
metadata: {name: p}
spec:
  restartPolicy: Always
  securityContext: {fsGroup: 2000}
  containers:
  - {name: a, command: [sh, -c, IDLE], volumeMounts: [{name: disk, mountPath: /disk}, {name: mem, mountPath: /mem}]}
  - {name: b, command: [sh, -c, IDLE], volumeMounts: [{name: disk, mountPath: /other}, {name: mem, mountPath: /mem, readOnly: true}],
     securityContext: {runAsUser: 1000}}
  volumes:
  - {name: disk, emptyDir: {}}
  - {name: mem, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
`)
	t.Run("PL-05 mode and fsGroup", func(t *testing.T) {
		k.says("p", "a", "stat -c '%a %u %g' /disk /mem", "2777 0 2000\n3777 0 2000")
		k.says("p", "b", "echo hi >/other/of-b; stat -c '%u %g' /other/of-b", "1000 2000")
		k.says("p", "a", "cat /disk/of-b", "hi")
	})
	t.Run("PL-05 memory and its size", func(t *testing.T) {
		k.says("p", "a", "stat -f -c %T /mem; df -k /mem | tail -1 | awk '{print $2}'", "tmpfs\n1024")
		k.fails("p", "a", "dd if=/dev/zero of=/mem/big bs=1k count=2000", "No space left")
		k.fails("p", "b", "touch /mem/x", "Read-only file system")
	})
	t.Run("PL-05 contents outlive a restart", func(t *testing.T) {
		k.sh("p", "a", "echo kept >/disk/f")
		k.stop1("p", "a")
		k.Wait("p", "restarted", func(p *corev1.Pod) bool {
			return p.Status.ContainerStatuses[0].RestartCount == 1 && p.Status.ContainerStatuses[0].State.Running != nil
		})
		k.says("p", "a", "cat /disk/f", "kept")
	})
}

// PL-05: hostPath and its types: what must be there, what is made, and what a pod whose path is wrong says.
func TestVolumeHostPath(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	dir := t.TempDir()
	k.must(os.WriteFile(filepath.Join(dir, "file"), []byte("of the host\n"), 0o644))
	k.up(strings.ReplaceAll(`
metadata: {name: p}
spec:
  containers:
  - name: c
    command: [sh, -c, IDLE]
    volumeMounts:
    - {name: dir, mountPath: /dir}
    - {name: ro, mountPath: /ro, readOnly: true}
    - {name: file, mountPath: /file}
    - {name: new, mountPath: /new}
    - {name: new-file, mountPath: /new-file}
    - {name: tty, mountPath: /null}
  volumes:
  - {name: dir, hostPath: {path: DIR, type: Directory}}
  - {name: ro, hostPath: {path: DIR}}
  - {name: file, hostPath: {path: DIR/file, type: File}}
  - {name: new, hostPath: {path: DIR/made/here, type: DirectoryOrCreate}}
  - {name: new-file, hostPath: {path: DIR/made-file, type: FileOrCreate}}
  - {name: tty, hostPath: {path: /dev/null, type: CharDevice}}
`, "DIR", dir))
	k.says("p", "c", "cat /file; echo hello >/dir/from-pod; echo x >/new/x; echo y >/new-file; cat /ro/from-pod", "of the host\nhello")
	k.fails("p", "c", "touch /ro/x", "Read-only file system")
	for name, want := range map[string]string{"from-pod": "hello\n", "made/here/x": "x\n", "made-file": "y\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s on the host holds %q (%v), want %q", name, got, err, want)
		}
	}
	for _, c := range []struct{ name, path, kind string }{
		{"absent", dir + "/absent", "Directory"}, {"not-a-folder", dir + "/file", "Directory"}, {"not-a-file", dir, "File"},
		{"not-a-socket", dir + "/file", "Socket"}, {"not-a-device", dir + "/file", "BlockDevice"},
	} {
		t.Run("PL-05 "+c.name, func(t *testing.T) {
			k.pod(strings.NewReplacer("NAME", c.name, "PATH", c.path, "KIND", c.kind).Replace(`
metadata: {name: NAME}
spec:
  containers: [{name: c, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, hostPath: {path: PATH, type: KIND}}]
`))
			k.WaitEvent(c.name, "FailedMount", "hostPath type check failed: "+c.path)
			p := k.Wait(c.name, "waiting", func(p *corev1.Pod) bool { return len(p.Status.ContainerStatuses) == 1 })
			if w := p.Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ContainerCreating" {
				t.Errorf("state %+v, want waiting with ContainerCreating", p.Status.ContainerStatuses[0].State)
			}
		})
	}
}

// PL-05: contents, modes and owners of files from configMaps, secrets, the downward API and projections of all of them.
func TestVolumeFiles(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.configMap("cm", map[string]string{"a": "1", "b": "2"})
	k.secret("sec", map[string]string{"user": "me", "pass": "s3cret"})
	k.up(`
metadata: {name: p, labels: {app: web}, annotations: {note: "a \"quoted\" one"}}
spec:
  initContainers: [{name: i, command: [sh, -c, 'cat /cm/a']  , volumeMounts: [{name: cm, mountPath: /cm}]}]
  containers:
  - name: c
    command: [sh, -c, IDLE]
    resources: {limits: {cpu: 1500m, memory: 64Mi}, requests: {cpu: 10m, memory: 8Mi}}
    volumeMounts:
    - {name: cm, mountPath: /cm}
    - {name: items, mountPath: /items}
    - {name: sec, mountPath: /sec}
    - {name: down, mountPath: /down}
    - {name: all, mountPath: /all}
    - {name: none, mountPath: /none}
    - {name: cm, mountPath: /etc/one.conf, subPath: a}
    - {name: data, mountPath: /sub, subPath: deep/er}
    - {name: data, mountPath: /expr, subPathExpr: "of-$(WHO)"}
    - {name: data, mountPath: /data}
    env: [{name: WHO, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  volumes:
  - {name: cm, configMap: {name: cm}}
  - {name: items, configMap: {name: cm, defaultMode: 0640, items: [{key: a, path: x/y}, {key: b, path: z, mode: 0400}]}}
  - {name: sec, secret: {secretName: sec, defaultMode: 0400}}
  - name: down
    downwardAPI:
      items:
      - {path: labels, fieldRef: {fieldPath: metadata.labels}}
      - {path: note, fieldRef: {fieldPath: "metadata.annotations['note']"}}
      - {path: name, fieldRef: {fieldPath: metadata.name}}
      - {path: cpu, resourceFieldRef: {containerName: c, resource: limits.cpu}}
      - {path: mcpu, resourceFieldRef: {containerName: c, resource: limits.cpu, divisor: 1m}}
      - {path: mem, resourceFieldRef: {containerName: c, resource: requests.memory, divisor: 1Mi}}
  - name: all
    projected:
      sources:
      - {configMap: {name: cm, items: [{key: a, path: one}]}}
      - {secret: {name: sec, items: [{key: pass, path: deep/two, mode: 0444}]}}
      - {downwardAPI: {items: [{path: ns, fieldRef: {fieldPath: metadata.namespace}}]}}
      - {configMap: {name: absent, optional: true}}
  - {name: none, configMap: {name: absent, optional: true}}
  - {name: data, emptyDir: {}}
`)
	for _, c := range []struct{ name, script, want string }{
		{"configMap", "cd /cm; ls; cat a b; stat -L -c %a a", "a\nb\n12644"},
		{"items and modes", "cd /items; cat x/y z; stat -L -c %a x/y z", "12640\n400"},
		{"secret in memory", "cd /sec; cat user pass; stat -L -c %a user; stat -f -c %T .", "mes3cret400\ntmpfs"},
		{"downward labels", "cat /down/labels", `app="web"`},
		{"downward fields", "cat /down/note; echo; cat /down/name", "a \"quoted\" one\np"},
		{"downward resources, rounded up", "cat /down/cpu; echo; cat /down/mcpu; echo; cat /down/mem", "2\n1500\n8"},
		{"projected", "cat /all/one /all/deep/two /all/ns; stat -L -c %a /all/deep/two /all/one", "1s3cret" + k.Namespace + "444\n644"},
		{"optional and absent", "ls /none | wc -l", "0"},
		{"subPath of a file", "cat /etc/one.conf", "1"},
		{"subPath of a folder", "touch /sub/f; ls /data/deep/er", "f"},
		{"subPathExpr", "touch /expr/g; ls /data/of-p", "g"},
	} {
		t.Run("PL-05 "+c.name, func(t *testing.T) { k.says("p", "c", c.script, c.want) })
	}
	t.Run("PL-05 not to be written", func(t *testing.T) {
		k.fails("p", "c", "echo x >/cm/a", "Read-only file system")
		k.fails("p", "c", "echo x >/etc/one.conf", "Read-only file system")
	})
}

// PL-05: with an fsGroup the files belong to the group, so that a container that is not root reads them.
func TestVolumeFSGroup(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.secret("sec", map[string]string{"key": "k"})
	k.up(`
metadata: {name: p}
spec:
  securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 4000, runAsNonRoot: true}
  containers: [{name: c, command: [sh, -c, IDLE], volumeMounts: [{name: sec, mountPath: /sec}]}]
  volumes: [{name: sec, secret: {secretName: sec, defaultMode: 0400}}]
`)
	k.says("p", "c", "cat /sec/key; stat -L -c '%a %u %g' /sec/key", "k440 0 4000")
	k.says("p", "c", "id -u; id -g; id -G", "1000\n1000\n1000 2000 4000") // 2000: the image's own
	t.Run("PL-05 the account's token too", func(t *testing.T) {
		k.says("p", "c", "test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo yes", "yes")
	})
}

// PL-05: a running container sees new contents of configMaps, secrets, labels and annotations. It waits for them as programs
// that reload do; a file mounted by subPath stays as it was.
func TestVolumeLiveUpdate(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.configMap("cm", map[string]string{"a": "old", "gone": "x"})
	k.secret("sec", map[string]string{"pass": "old"})
	k.up(`
metadata: {name: p, labels: {tier: old}}
spec:
  containers:
  - {name: cm, image: tool, args: [watch, /v], volumeMounts: [{name: cm, mountPath: /v}]}
  - {name: sec, image: tool, args: [watch, /v], volumeMounts: [{name: sec, mountPath: /v}]}
  - {name: down, image: tool, args: [watch, /v], volumeMounts: [{name: down, mountPath: /v}]}
  - {name: all, image: tool, args: [watch, /v], volumeMounts: [{name: all, mountPath: /v}]}
  - {name: c, command: [sh, -c, IDLE], volumeMounts: [{name: cm, mountPath: /f, subPath: a}]}
  volumes:
  - {name: cm, configMap: {name: cm}}
  - {name: sec, secret: {secretName: sec}}
  - {name: down, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
  - {name: all, projected: {sources: [{configMap: {name: cm}}, {secret: {name: sec}}]}}
`)
	k.awaitLog("p", "cm", "files: a=old gone=x\n")
	k.awaitLog("p", "all", "files: a=old gone=x pass=old\n")

	began := time.Now()
	k.setConfigMap("cm", map[string]string{"a": "new", "b": "more"})
	k.awaitLog("p", "cm", "files: a=new b=more\n")
	if took := time.Since(began); took > soon {
		t.Errorf("the configMap's new contents took %s", took)
	}
	_, err := k.Client.CoreV1().Secrets(k.Namespace).Patch(k.ctx(), "sec", types.MergePatchType, []byte(`{"stringData":{"pass":"new"}}`), metav1.PatchOptions{})
	k.must(err)
	k.awaitLog("p", "sec", "files: pass=new\n")
	k.awaitLog("p", "all", "files: a=new b=more pass=new\n")
	_, err = k.Client.CoreV1().Pods(k.Namespace).Patch(k.ctx(), "p", types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"new"}}}`), metav1.PatchOptions{})
	k.must(err)
	k.awaitLog("p", "down", "files: labels=tier=\"new\"\n")
	k.says("p", "c", "cat /f", "old")
	for _, s := range k.Get("p").Status.ContainerStatuses {
		if s.RestartCount > 0 {
			t.Errorf("container %s was restarted", s.Name)
		}
	}
}

// PL-05: the service account's token is there, is good for the API, and names its pod.
func TestVolumeServiceAccountToken(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	pod := k.up(`
metadata: {name: p}
spec:
  containers:
  - name: c
    command: [sh, -c, IDLE]
    volumeMounts: [{name: t, mountPath: /t}]
  volumes:
  - {name: t, projected: {sources: [{serviceAccountToken: {path: token, audience: vault, expirationSeconds: 600}}]}}
`)
	const account = "/var/run/secrets/kubernetes.io/serviceaccount"
	k.says("p", "c", "cat "+account+"/namespace", k.Namespace)
	k.says("p", "c", "grep -c BEGIN "+account+"/ca.crt", "1")
	who := func(token string) string {
		config := rest.AnonymousClientConfig(k.Config)
		config.BearerToken = token
		client, err := kubernetes.NewForConfig(config)
		k.must(err)
		_, err = client.CoreV1().Secrets(k.Namespace).List(k.ctx(), metav1.ListOptions{})
		if err == nil {
			return "may read secrets"
		}
		return err.Error()
	}
	if got, want := who(k.sh("p", "c", "cat "+account+"/token")), "system:serviceaccount:"+k.Namespace+":default"; !strings.Contains(got, want) {
		t.Errorf("with the pod's token the API says %q; want it to name %s", got, want)
	}
	other := k.sh("p", "c", "cat /t/token")
	if got := who(other); !strings.Contains(got, "Unauthorized") {
		t.Errorf("with a token for another audience the API says %q", got)
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(other, ".")[1])
	k.must(err)
	for _, want := range []string{`"vault"`, string(pod.UID), `"name":"p"`} {
		if !strings.Contains(string(claims), want) {
			t.Errorf("the token's claims lack %s: %s", want, claims)
		}
	}
	k.up(`
metadata: {name: none}
spec: {automountServiceAccountToken: false, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.says("none", "c", "ls /var/run/secrets 2>/dev/null | wc -l", "0")
}

// PL-05, PL-15: a pod whose configMap or secret is missing waits, says what for, and starts as soon as it is there, however
// long it has been tried before.
func TestVolumeMissing(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.pod(`
metadata: {name: volume}
spec:
  containers: [{name: c, command: [sh, -c, 'cat /v/a; echo; IDLE'], volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, configMap: {name: later}}]
`)
	k.pod(`
metadata: {name: env}
spec:
  containers: [{name: c, command: [sh, -c, 'echo $A; IDLE'], env: [{name: A, valueFrom: {secretKeyRef: {name: later, key: a}}}]}]
`)
	k.pod(`
metadata: {name: key}
spec:
  containers: [{name: c, command: [sh, -c, 'cat /v/a; echo; IDLE'], volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, configMap: {name: without, items: [{key: a, path: a}]}}]
`)
	k.configMap("without", map[string]string{"b": ""})
	k.WaitEvent("volume", "FailedMount", `configmap "later" not found`)
	k.WaitEvent("key", "FailedMount", "a")
	p := k.Wait("env", "says what is missing", func(p *corev1.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) == 1 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "CreateContainerConfigError"
	})
	if m := p.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(m, `secret "later" not found`) {
		t.Errorf("the container says %q", m)
	}
	// Tried at 0, 1, 3, 7 and 15 s; by then the next try by itself is 15 s away.
	time.Sleep(16 * time.Second) // it is the time itself that is needed
	began := time.Now()
	k.configMap("later", map[string]string{"a": "here"})
	k.secret("later", map[string]string{"a": "here"})
	k.setConfigMap("without", map[string]string{"a": "here"})
	for _, name := range []string{"volume", "env", "key"} {
		k.WaitReady(name)
		k.awaitLog(name, "c", "here")
	}
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("the pods took %s to start once what they waited for was there", took)
	}
}
