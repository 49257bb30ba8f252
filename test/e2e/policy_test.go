// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// passes checks whether a pod reaches a page; policies have their effect a moment after they are stored.
func (k *kit) passes(pod, url string, want bool) {
	k.t.Helper()
	var out, errs string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		var code int
		out, errs, code = k.exec(pod, "c", "sh", "-c", "timeout 2 wget -qO- "+url)
		if (code == 0) == want {
			if !want && code != 143 { // SIGTERM, by timeout
				k.t.Errorf("WL-19 %s → %s ends with %d, %q; want no answer at all", pod, url, code, errs)
			}
			return
		}
	}
	k.t.Errorf("WL-19 %s → %s: %q %q, want it to pass: %v", pod, url, out, errs, want)
}

// client is a pod that asks others.
func (k *kit) client(name, labels string) *corev1.Pod {
	return k.up("metadata: {name: " + name + ", labels: " + labels + "}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}\n")
}

// dialFrom connects from the network of a process.
func dialFrom(pid int, addr string) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err == nil {
			defer f.Close()
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- err
			return
		}
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			c.Close()
		}
		done <- err
	}()
	return <-done
}

const denyAllIngress = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {}}
`

// WL-19, RS-09: policies hold for real pods, directly and through a Service, from a pod's first moment, while probes and the machine still
// reach them; they hold while the server is killed, and end when they are deleted.
func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	srv := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.103.0/24"}})
	k := kitOn(t, srv)
	web := k.up(`
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: web, image: tool, args: [http, ":8080"], ports: [{name: page, containerPort: 8080}], readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}}
  - {name: c, command: [sh, -c, IDLE]}
`)
	k.client("friend", "{role: friend}")
	k.client("other", "{}")
	s := k.service(`
metadata: {name: web}
spec: {ports: [{name: http, port: 80}]}
`)
	k.leads(s, map[string]int32{"http": 8080}, web)
	direct, through := "http://"+web.Status.PodIP+":8080/hostname", "http://"+s.Spec.ClusterIP+"/hostname"
	for _, url := range []string{direct, through} {
		k.passes("friend", url, true)
		k.passes("other", url, true)
	}

	k.objects(denyAllIngress)
	both := func(pod string, want bool) {
		t.Helper()
		k.passes(pod, direct, want)
		k.passes(pod, through, want)
	}
	both("friend", false)
	both("web", true) // itself
	if got, err := fetch(k.ctx(), direct); err != nil || got != "web" {
		t.Errorf("WL-19 the machine does not reach its pod: %q, %v", got, err)
	}
	k.objects(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: allow}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress: [{from: [{podSelector: {matchLabels: {role: friend}}}], ports: [{port: page}]}]
`)
	both("friend", true)
	both("other", false)

	t.Run("WL-19 a pod is isolated from its first moment, and its probes work", func(t *testing.T) {
		_, out := k.ran(`
metadata: {name: early}
spec: {restartPolicy: Never, containers: [{name: c, command: [sh, -c, "for i in 1 2 3; do timeout 2 wget -qO- ` + direct + ` && echo passed; done; true"]}]}
`)
		if strings.Contains(out, "passed") {
			t.Errorf("a new pod gets through: %s", out)
		}
		k.web("late")
	})

	t.Run("WL-19 what was allowed or forbidden stays so while the server is down", func(t *testing.T) {
		pid := k.hostPID("other", "c")
		srv.Kill()
		if err := dialFrom(pid, net.JoinHostPort(web.Status.PodIP, "8080")); err == nil {
			t.Error("a policy has ended with the server")
		}
		k.must(srv.Start(context.Background()))
		both("friend", true)
		both("other", false)
	})

	for _, name := range []string{"deny", "allow"} {
		k.must(k.Client.NetworkingV1().NetworkPolicies(k.Namespace).Delete(k.ctx(), name, metav1.DeleteOptions{}))
	}
	both("other", true)
}

// WL-19: pods under default-deny egress reach the name server by the rule that opens it in any cluster, and nothing else of the machine.
func TestNetworkPoliciesEgress(t *testing.T) {
	t.Parallel()
	k := kitOn(t, own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.104.0/24"}}))
	web := k.web("web")
	k.client("c", "{}")
	url := "http://" + web.Status.PodIP + ":8080/hostname"
	asks := func(want string) {
		t.Helper()
		var out, errs string
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
			out, errs, _ = k.exec("c", "c", "nslookup", "-type=a", "kubernetes.default.svc.cluster.local")
			if strings.Contains(out+errs, want) {
				return
			}
		}
		t.Errorf("WL-19 a name is answered with %q %q, want %q", out, errs, want)
	}
	asks("10.98.104.1")
	out := k.KubectlIn(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {}, policyTypes: [Egress]}
`, "apply", "-f", "-")
	if strings.Contains(out.Err, "Warning") {
		t.Errorf("WL-19 a policy that is enforced is warned of: %s", out.Err)
	}
	k.passes("c", url, false)
	asks("timed out")
	k.objects(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: names}
spec:
  podSelector: {}
  policyTypes: [Egress]
  egress:
  - to:
    - {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}}
    ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
`)
	asks("10.98.104.1")
	k.passes("c", url, false)
	k.objects(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: out}
spec: {podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}
`)
	k.passes("c", url, true)
}
