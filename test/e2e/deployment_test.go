// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/wherryproject/wherry/test/images"
)

// WL-01, WL-02, WL-04: an application of a Deployment and a Service, of a StatefulSet and of a DaemonSet runs by the real kubectl: its
// pods find one another by name, it is scaled, rolled out and rolled back, and all of it goes with its owner.
func TestDeployment(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.objects(strings.NewReplacer("IDLE", Idle, "BUSYBOX", images.BusyboxRef, "TOOL", images.ToolRef).Replace(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: web, image: TOOL, args: [http, ":8080"], readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: BUSYBOX, command: [sh, -c, "IDLE"]}]
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: each}
spec:
  selector: {matchLabels: {app: each}}
  template:
    metadata: {labels: {app: each}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: BUSYBOX, command: [sh, -c, "IDLE"]}]
`))
	for _, of := range []string{"deployment/web", "statefulset/db", "daemonset/each"} {
		k.Kubectl("rollout", "status", of, "--timeout=90s")
	}
	k.says("db-0", "c", "wget -qO- http://web/hostname | cut -d- -f1", "web")
	k.resolves("db-0", "a", "db-1.db."+k.Namespace+".svc.cluster.local", "Address: ")

	// DA-05: an object's name means one of its pods, here as on clusters of others.
	for _, of := range []string{"deployment/web", "sts/db", "daemonset/each", "svc/web"} {
		k.wherry(nil, "exec", of, "-m", "wherry.dev/toolbox", "--", "ls", "/c").exits(0).Says(": pod ")
	}
	k.wherry(nil, "debug", "ds/each", "--", "true").exits(0).Says("daemonset/each: pod each-", "the only one that runs")
	k.wherry(nil, "cp", "statefulset/db:/bin/busybox", t.TempDir()).exits(0).Says("the newest of 2 that run")
	k.wherry(nil, "debug", "web", "--", "true").exits(1).Says("there is deployment/web and service/web: each means one of its pods")
	k.wherry(nil, "debug", "deployment/none", "--", "true").exits(1).Says("none")

	k.Kubectl("scale", "deployment/web", "--replicas=3")
	k.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	k.Kubectl("set", "env", "deployment/web", "EDITION=2")
	k.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	k.Kubectl("rollout", "undo", "deployment/web")
	k.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	if out := k.Kubectl("get", "deployment", "web").Out; !strings.Contains(out, "3/3") {
		t.Errorf("WL-02 kubectl get: %s", out)
	}
	if out := k.Kubectl("rollout", "history", "deployment/web").Out; !strings.Contains(out, "\n3 ") || strings.Contains(out, "\n1 ") {
		t.Errorf("WL-02 the revision that was gone back to is not the newest: %s", out)
	}

	k.Kubectl("delete", "deployment/web", "statefulset/db", "daemonset/each", "--cascade=foreground", "--timeout=60s")
	if out := k.Kubectl("get", "replicasets,controllerrevisions,pods", "-o", "name").Out; out != "" {
		t.Errorf("WL-04 left of what is gone: %s", out)
	}
}
