// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// told runs a wherry command on the server's data folder, which must succeed, and returns what it prints.
func (k *kit) told(args ...string) string {
	k.t.Helper()
	out, err := k.Server.Wherry(k.ctx(), args...).Output()
	if err != nil {
		k.t.Fatalf("wherry %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// request waits for a request for a certificate, as it should be.
func (k *kit) request(what string, ok func(*certificatesv1.CertificateSigningRequest) bool) *certificatesv1.CertificateSigningRequest {
	k.t.Helper()
	lw := cache.NewListWatchFromClient(k.Client.CertificatesV1().RESTClient(), "certificatesigningrequests", "", fields.Everything())
	e, err := watchtools.UntilWithSync(k.ctx(), lw, &certificatesv1.CertificateSigningRequest{}, nil, func(e watch.Event) (bool, error) {
		r, is := e.Object.(*certificatesv1.CertificateSigningRequest)
		return is && e.Type != watch.Deleted && ok(r), nil
	})
	if err != nil {
		k.t.Fatalf("no request for a certificate that %s: %v", what, err)
	}
	return e.Object.(*certificatesv1.CertificateSigningRequest)
}

// TestAgentJoins: an agent joins with what `wherry token create --print-join-command` prints, as its node and no more; once a person
// has approved the certificate of its API with kubectl, logs and exec reach its pods; and it comes back without the token (Identity, PL-37).
// ATTACK C35.
func TestAgentJoins(t *testing.T) {
	t.Parallel()
	srv := own(t, ServerOptions{})
	k := inDefault(t, srv)
	command := k.told("token", "create", "--ttl", "1h", "--print-join-command", "--server", srv.Config.Host)
	_, encoded, _ := strings.Cut(command, "echo ")
	encoded, _, _ = strings.Cut(encoded, " ")
	bootstrap, err := base64.StdEncoding.DecodeString(encoded)
	k.must(err)
	file := filepath.Join(t.TempDir(), "wherry-bootstrap.yaml")
	k.must(os.WriteFile(file, bootstrap, 0o600))
	agent := joinedBy(t, srv, "wherry-joins", "--bootstrap-kubeconfig", file, "--rotate-server-certificates")

	r := k.request("is for the node's API", func(r *certificatesv1.CertificateSigningRequest) bool {
		return r.Spec.SignerName == certificatesv1.KubeletServingSignerName
	})
	if r.Spec.Username != "system:node:wherry-joins" {
		t.Errorf("asked by %s", r.Spec.Username)
	}
	k.Kubectl("get", "csr").Has("kubernetes.io/kube-apiserver-client-kubelet", "Approved,Issued", "kubernetes.io/kubelet-serving", "Pending")
	k.Kubectl("certificate", "approve", r.Name).Has("approved")
	k.request("is issued", func(now *certificatesv1.CertificateSigningRequest) bool {
		return now.UID == r.UID && len(now.Status.Certificate) > 0
	})
	if !strings.Contains(k.told("token", "list"), "59m") {
		t.Error("the token is not listed")
	}

	p := podOf(t, `{metadata: {name: there}, spec: {nodeName: wherry-joins, containers: [{name: main, command: [sh, -c, "echo hello; IDLE"]}]}}`)
	k.Create(p)
	k.WaitReady("there")
	k.awaitLog("there", "main", "hello")
	k.says("there", "main", "echo $HOSTNAME", "there")
	asks, text := k.ran(`{metadata: {name: asks}, spec: {nodeName: wherry-joins, restartPolicy: Never, containers: [{name: main, image: tool, args: [api, /version],
		env: [{name: API, value: "https://$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"}]}]}}`)
	if asks.Status.Phase != corev1.PodSucceeded || !strings.HasPrefix(text, "200") {
		t.Errorf("the API server as a pod of the agent reaches it: %s: %q", asks.Status.Phase, text)
	}

	k.must(agent.Stop())
	k.told("token", "delete", strings.Fields(k.told("token", "list"))[5])
	again := agent.Wherry(context.Background(), "agent", "--data-dir", agent.DataDir, "--node-name", "wherry-joins", "--kubeconfig", filepath.Join(agent.DataDir, "agent.kubeconfig"), "--kubelet-port", "0")
	log, err := os.Create(filepath.Join(t.TempDir(), "again.log"))
	k.must(err)
	defer log.Close()
	again.Stderr = log
	k.must(again.Start())
	done := make(chan struct{})
	agent.cmd, agent.done = again, done
	go func() { agent.err = again.Wait(); close(done) }()
	k.Delete("there") // which only its agent can bring to its end
	k.must(k.awaitGone(k.ctx(), "pods", k.Namespace, "there"))
}

// TestCertsRotate: the CA and the key of service account tokens are replaced under a running pod: whoever had a kubeconfig goes on
// with it until the end of the overlap, the pod hears of the new CA, and nothing is restarted (Identity).
// ATTACK C30.
func TestCertsRotate(t *testing.T) {
	t.Parallel()
	srv := own(t, ServerOptions{})
	k := kitOn(t, srv)
	k.up(`{metadata: {name: web}, spec: {containers: [{name: main, command: [sh, -c, "n=; i=0; while :; do
		m=$(grep -c BEGIN /var/run/secrets/kubernetes.io/serviceaccount/ca.crt);
		[ x$m = x$n ] || { n=$m; i=$((i+1)); echo $i: $n CAs; }; sleep 0.2; done"]}]}}`)
	k.awaitLog("web", "main", "1: 1 CAs")
	dir := t.TempDir()
	jane := filepath.Join(dir, "jane.yaml")
	k.told("kubeconfig", "--user", "jane", "--group", "dev", "-o", jane)
	asJane := func() (string, error) {
		text, err := os.ReadFile(jane)
		k.must(err)
		was := "server: " + between(string(text), "server: ", "\n")
		k.must(os.WriteFile(jane, []byte(strings.Replace(string(text), was, "server: "+srv.Config.Host, 1)), 0o600)) // each start has another port here
		out, err := srv.Wherry(k.ctx(), "kubectl", "--kubeconfig", jane, "auth", "whoami").CombinedOutput()
		return string(out), err
	}
	if out, err := asJane(); err != nil || !strings.Contains(out, "jane") || !strings.Contains(out, "dev") {
		t.Fatalf("whoami: %v: %s", err, out)
	}

	k.must(srv.Stop())
	k.told("certs", "rotate")
	k.must(srv.Start(context.Background()))
	if out, err := asJane(); err != nil {
		t.Errorf("during the overlap: %v: %s", err, out)
	}
	k.awaitLog("web", "main", "2: 2 CAs")
	out := k.told("certs")
	for deadline := time.Now().Add(Timeout); !strings.Contains(out, "node "+srv.NodeName) && time.Now().Before(deadline); out = k.told("certs") {
		time.Sleep(200 * time.Millisecond) // the node's object names the port of before for a moment
	}
	for _, name := range []string{"CA before", "API server", "node " + srv.NodeName} {
		if !strings.Contains(out, name) {
			t.Errorf("certs lack %s:\n%s", name, out)
		}
	}

	k.must(srv.Stop())
	k.told("certs", "rotate", "--finish")
	k.must(srv.Start(context.Background()))
	if out, err := asJane(); err == nil {
		t.Errorf("after the overlap: %s", out)
	}
	k.awaitLog("web", "main", "3: 1 CAs")
	if p := k.Get("web"); p.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod was restarted: %s", summary(p))
	}
	k.Kubectl("create", "token", "default", "--duration", "20m").Has("ey")
	k.Kubectl("auth", "whoami").Has("wherry-admin", "system:masters")
}

func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}
