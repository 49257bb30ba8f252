// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ordinaryCluster stands before a server and hides that it is Wherry's, so that the command line takes it for an
// ordinary cluster's. Users are told by their tokens.
func ordinaryCluster(t *testing.T, s *Server) (address, ca string) {
	t.Helper()
	to, err := url.Parse(s.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.Config.CAData) {
		t.Fatal("the server's authority cannot be read")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}}
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
}

// clusterUser is somebody with a kubeconfig for an ordinary cluster.
type clusterUser struct {
	k          *kit
	kubeconfig string
}

func (u clusterUser) wherry(args ...string) Result {
	u.k.t.Helper()
	cmd := u.k.Wherry(u.k.ctx(), args...)
	cmd.Env = append(cmd.Env, "KUBECONFIG="+u.kubeconfig)
	return (&Cmd{Cmd: cmd, t: u.k.t, line: "wherry " + strings.Join(args, " "), cancel: func() {}}).run()
}

// TestCluster installs debugging in a cluster as any administrator does: DaemonSet, Deployment, aggregated API; and debugs
// by it, with roles in the pod's namespace. The cluster is a Wherry server that does not say so: Kubernetes' own programs are
// tried by make test-cluster-debug.
// DA-02, DA-03, DA-04, DA-05, DA-06, DA-07, DA-08, DA-09.
func TestCluster(t *testing.T) {
	t.Parallel()
	s := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.78.0/24"}})
	k := kitOn(t, s)
	archive := filepath.Join(t.TempDir(), "wherry.tar")
	k.told("cluster", "image", "-o", archive)
	k.told("image", "import", archive)
	address, ca := ordinaryCluster(t, s)
	k.Kubectl("create", "namespace", "people")
	user := func(name string) clusterUser {
		k.Kubectl("create", "serviceaccount", name, "-n", "people")
		token := strings.TrimSpace(k.Kubectl("create", "token", name, "-n", "people").Out)
		path := filepath.Join(t.TempDir(), name)
		k.must(os.WriteFile(path, fmt.Appendf(nil, `{"kind":"Config","apiVersion":"v1","current-context":"c",
"contexts":[{"name":"c","context":{"cluster":"c","user":"u","namespace":%q}}],
"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"u","user":{"token":%q}}]}`,
			k.Namespace, address, base64.StdEncoding.EncodeToString([]byte(ca)), token), 0o600))
		return clusterUser{k, path}
	}
	bind := func(name string, roles ...string) {
		for _, role := range roles {
			k.Kubectl("create", "rolebinding", name+"-"+role, "-n", k.Namespace, "--clusterrole="+role, "--serviceaccount=people:"+name)
		}
	}
	root, ann, lou := user("root"), user("ann"), user("lou")
	k.Kubectl("create", "clusterrolebinding", "root", "--clusterrole=cluster-admin", "--serviceaccount=people:root")
	root.wherry("cluster", "install", "--image-pull-policy", "Never", "--cri-socket", filepath.Join(s.DataDir, "cri.sock"),
		"--timeout", "3m").Says("API: available")
	k.up(`
metadata: {name: web}
spec: {containers: [{name: main, command: [sh, -c, "echo hello > /tmp/f; IDLE"]}]}
`)
	bind("ann", "view", "wherry-debug")
	bind("lou", "view", "wherry-look")
	spec := k.Kubectl("get", "pod", "web", "-o", "jsonpath={.spec}").Out

	ann.wherry("debug", "web", "--", "cat", "/c/main/tmp/f").Is("hello")
	if r := ann.wherry("debug", "web", "--", "sh", "-c", "echo out; exit 7"); r.Code != 7 || r.Out != "out\n" {
		t.Errorf("a command's end: %+v", r)
	}
	ann.wherry("exec", "web", "-m", "wherry.dev/toolbox", "--", "ls", "/c").Is("main")
	copied := filepath.Join(t.TempDir(), "f")
	lou.wherry("cp", "web:/tmp/f", copied)
	if text, err := os.ReadFile(copied); err != nil || string(text) != "hello\n" {
		t.Errorf("copied: %q, %v", text, err)
	}
	refused := func(u clusterUser, why string, args ...string) {
		t.Helper()
		if r := u.wherry(args...); r.Code == 0 || !strings.Contains(r.Err, why) {
			t.Errorf("wherry %v: %+v; want it refused: %s", args, r, why)
		}
	}
	refused(lou, "wherry-debug", "debug", "web", "--", "id")
	refused(lou, "wherry-debug", "cp", copied, "web:/tmp/g")
	refused(ann, "wherry-privileged", "debug", "web", "--profile", "sysadmin", "--", "id")
	refused(ann, "forbidden", "debug", "-n", "wherry-debug", "wherry-debug-api", "--", "id")
	refused(ann, "not found", "debug", "gone", "--", "id")
	if r := ann.wherry("debug", "web", "--ttl", "1s", "--", "sleep", "1000"); r.Code == 0 || !strings.Contains(r.Err, "time limit") {
		t.Errorf("a session that has had its time: %+v", r)
	}
	ann.wherry("debug", "history", "web").Has("people:ann", "sleep 1000")
	if now := k.Kubectl("get", "pod", "web", "-o", "jsonpath={.spec}").Out; now != spec {
		t.Errorf("the pod was changed: %s\n%s", spec, now)
	}
	root.wherry("cluster", "uninstall", "--yes")
	refused(ann, "wherry cluster install", "exec", "web", "-m", "wherry.dev/toolbox", "--", "ls")
}
