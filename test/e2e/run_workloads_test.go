// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// wherry run takes Jobs: what their pods print has their names in front, the exit code is that of the pod that failed last, 0
// of a Job that is complete; with --rm nothing of it is left (WL-03, WL-04).
func TestRunJob(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	const text = `
apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {word: hello}
---
apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec:
  completions: 2
  completionMode: Indexed
  backoffLimit: 1
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - name: c
        image: BUSYBOX
        command: [sh, -c, "echo $WORD from $JOB_COMPLETION_INDEX; exit CODE"]
        env: [{name: WORD, valueFrom: {configMapKeyRef: {name: words, key: word}}}]
`
	of := func(name, code string) string {
		return manifestFile(t, strings.NewReplacer("NAME", name, "CODE", code).Replace(text))
	}
	r := runWherry(t, nil, "run", "--rm", "-o", "name", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", of("good", "0")).exits(0)
	r.Is("job.batch/good")
	r.Says("job good created", "/c | hello from 0\n", "/c | hello from 1\n", "job/good 2 of 2 succeeded, complete", "job/good is gone")
	r = runWherry(t, nil, "run", "--rm", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", of("bad", "6")).exits(6)
	r.Has("/c | hello from 0\n").Says("job/bad failed: BackoffLimitExceeded")
	if left := s.Kubectl("get", "jobs,pods,configmaps", "-o", "name", "--field-selector", "metadata.name!=kube-root-ca.crt").Out; left != "" {
		t.Errorf("--rm left %s", left)
	}
}

// wherry run takes an application: it tells how its pods come, until Ctrl-C, which removes all that it made; detached, it
// returns when all is ready, and a second run updates what is there and leaves it (WL-02, WL-04).
func TestRunDeployment(t *testing.T) {
	t.Parallel()
	s := shared(t)
	file := manifestFile(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 5, containers: [{name: c, image: TOOL, args: [http, ":8080"]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`)
	run := func(args ...string) *exec.Cmd {
		return exec.Command(world(t).Wherry, append([]string{"run", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", file}, args...)...)
	}
	interrupted := func(cmd *exec.Cmd, until string) string {
		t.Helper()
		p := (&Cmd{Cmd: cmd, t: t, line: "wherry run", cancel: func() { _ = cmd.Process.Kill() }}).StartProcess()
		p.Err.Await(until)
		p.Signal(os.Interrupt)
		if code := p.Wait(); code != 130 {
			t.Errorf("exit code %d, want 130\n%s", code, p.Err.Text())
		}
		return p.Err.Text()
	}
	said := interrupted(run(), "deployment/web 2 of 2 ready")
	for _, want := range []string{"deployment web created", "scheduled to node", "deployment/web is gone", "service web removed", "persistentvolumeclaim data removed"} {
		if !strings.Contains(said, want) {
			t.Errorf("it did not say %q:\n%s", want, said)
		}
	}
	const kinds = "deployments,replicasets,pods,services,persistentvolumeclaims"
	if left := s.Kubectl("get", kinds, "-o", "name").Out; left != "" {
		t.Errorf("left: %s", left)
	}

	runWherry(t, nil, "run", "--detach", "-o", "name", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", file).exits(0).Is("deployment.apps/web")
	s.Kubectl("get", "deployment", "web").Has("2/2")
	said = interrupted(run("--rm"), "deployment/web 2 of 2 ready")
	if !strings.Contains(said, "deployment/web was there before and stays") {
		t.Errorf("of what was there it said:\n%s", said)
	}
	s.Kubectl("get", "deployment", "web").Has("2/2")
}
