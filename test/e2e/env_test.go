// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PL-06: the environment in all its forms, as the process has it.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.configMap("cm", map[string]string{"A": "of-cm", "B": "b", "1-odd.name": "y"})
	k.secret("sec", map[string]string{"PASS": "s3cret"})
	pod := k.up(`
metadata: {name: p, labels: {tier: back}, annotations: {note: hello}}
spec:
  serviceAccountName: default
  containers:
  - name: c
    command: [sh, -c, 'echo "args: $0 $1 $2"; IDLE', "$(FIRST)", "$(NOT_THERE)", "$$(FIRST)"]
    resources: {limits: {cpu: 1500m, memory: 64Mi}, requests: {cpu: 10m, memory: 8Mi, ephemeral-storage: 1Mi}}
    envFrom:
    - {configMapRef: {name: cm}}
    - {prefix: P_, secretRef: {name: sec}}
    - {configMapRef: {name: absent, optional: true}}
    env:
    - {name: FIRST, value: one}
    - {name: SECOND, value: "$(FIRST)-two"}
    - {name: LATER, value: "$(LAST)"}
    - {name: LAST, value: last}
    - {name: ESCAPED, value: "$$(FIRST)"}
    - {name: B, value: "over $(A)"}
    - {name: EMPTY, value: ""}
    - {name: KEY, valueFrom: {configMapKeyRef: {name: cm, key: A}}}
    - {name: SECRET, valueFrom: {secretKeyRef: {name: sec, key: PASS}}}
    - {name: OPTIONAL, valueFrom: {secretKeyRef: {name: absent, key: x, optional: true}}}
    - {name: F_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: F_NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    - {name: F_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
    - {name: F_LABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['tier']"}}}
    - {name: F_NOTE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['note']"}}}
    - {name: F_NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: F_ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
    - {name: F_HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
    - {name: F_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: F_IPS, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}
    - {name: R_CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
    - {name: R_MCPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
    - {name: R_MEM, valueFrom: {resourceFieldRef: {resource: limits.memory}}}
    - {name: R_KI, valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: 1Ki}}}
    - {name: R_DISK, valueFrom: {resourceFieldRef: {resource: requests.ephemeral-storage}}}
`)
	env := map[string]string{}
	for line := range strings.SplitSeq(k.sh("p", "c", `tr '\0' '\n' </proc/1/environ`), "\n") {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	for name, want := range map[string]string{
		"FIRST": "one", "SECOND": "one-two", "LATER": "$(LAST)", "ESCAPED": "$(FIRST)", "EMPTY": "",
		"A": "of-cm", "B": "over of-cm", "P_PASS": "s3cret", "KEY": "of-cm", "SECRET": "s3cret", "IMAGE_SAYS": "hello",
		"F_NAME": "p", "F_NS": k.Namespace, "F_UID": string(pod.UID), "F_LABEL": "back", "F_NOTE": "hello", "F_NODE": k.NodeName,
		"F_ACCOUNT": "default", "F_HOST": k.NodeIP, "F_IP": pod.Status.PodIP, "F_IPS": pod.Status.PodIP,
		"R_CPU": "2", "R_MCPU": "1500", "R_MEM": "67108864", "R_KI": "8192", "R_DISK": "1048576",
		"HOSTNAME": "p", "1-odd.name": "y",
	} {
		if got, ok := env[name]; !ok || got != want {
			t.Errorf("PL-06 %s is %q (there: %v), want %q", name, got, ok, want)
		}
	}
	if got, ok := env["OPTIONAL"]; ok {
		t.Errorf("PL-06 OPTIONAL is there: %q", got)
	}
	if got, want := k.log("p", "c"), "args: one $(NOT_THERE) $(FIRST)\n"; got != want {
		t.Errorf("PL-06 the container's log says %q, want %q", got, want)
	}
}

// PL-06: variables of the namespace's services, for pods that were made after them, and none where they are not wanted.
func TestEnvironmentServiceLinks(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	svc, err := k.Client.CoreV1().Services(k.Namespace).Create(k.ctx(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "my-db"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "sql", Port: 5432}}, Selector: map[string]string{"app": "db"}}}, metav1.CreateOptions{})
	k.must(err)
	_, out := k.ran(`
metadata: {name: with}
spec: {restartPolicy: Never, containers: [{name: c, command: [sh, -c, "env | sort"]}]}
`)
	ip := svc.Spec.ClusterIP
	for _, want := range []string{"MY_DB_SERVICE_HOST=" + ip, "MY_DB_SERVICE_PORT=5432", "MY_DB_SERVICE_PORT_SQL=5432", "MY_DB_PORT=tcp://" + ip + ":5432",
		"MY_DB_PORT_5432_TCP=tcp://" + ip + ":5432", "MY_DB_PORT_5432_TCP_PROTO=tcp", "MY_DB_PORT_5432_TCP_PORT=5432", "MY_DB_PORT_5432_TCP_ADDR=" + ip,
		"KUBERNETES_SERVICE_HOST="} {
		if !strings.Contains(out, want) {
			t.Errorf("PL-06 the environment lacks %s:\n%s", want, out)
		}
	}
	_, out = k.ran(`
metadata: {name: without}
spec: {restartPolicy: Never, enableServiceLinks: false, containers: [{name: c, command: [sh, -c, "env | sort"]}]}
`)
	if strings.Contains(out, "MY_DB") || !strings.Contains(out, "KUBERNETES_SERVICE_HOST=") {
		t.Errorf("PL-06 without service links the environment must name the API's service only:\n%s", out)
	}
}
