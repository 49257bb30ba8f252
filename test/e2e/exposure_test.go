// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// listening are the addresses that a process listens on: TCP, UDP, and the paths of sockets.
func listening(t *testing.T, pid int) (ips []netip.AddrPort, paths []string) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", pid)
	fds, err := filepath.Glob(proc + "fd/*")
	if err != nil {
		t.Fatal(err)
	}
	mine := map[string]bool{}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:[") {
			mine[strings.Trim(strings.TrimPrefix(to, "socket:"), "[]")] = true
		}
	}
	for table, states := range map[string][]string{"tcp": {"0A"}, "tcp6": {"0A"}, "udp": {"07"}, "udp6": {"07"}} {
		text, err := os.ReadFile(proc + "net/" + table)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			f := strings.Fields(line) // sl local_address rem_address st ... inode
			if len(f) > 9 && slices.Contains(states, f[3]) && mine[f[9]] {
				ips = append(ips, listenAddress(t, f[1]))
			}
		}
	}
	text, err := os.ReadFile(proc + "net/unix")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line) // Num RefCount Protocol Flags Type St Inode Path
		if len(f) > 7 && f[3] == "00010000" && mine[f[6]] {
			paths = append(paths, f[7])
		}
	}
	return ips, paths
}

// listenAddress reads 0100007F:1F90: bytes of each four in the machine's order.
func listenAddress(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	var ip []byte
	for i := 0; i+8 <= len(host); i += 8 {
		word, err := strconv.ParseUint(host[i:i+8], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		ip = append(ip, byte(word), byte(word>>8), byte(word>>16), byte(word>>24))
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n))
}

// TestFreshServerIsClosed lists everything that a fresh server listens on and what its files let others do: nothing is
// reachable from another machine, no socket and no file of the data folder that holds a secret is open to other users.
// ATTACK A33, B28.
func TestFreshServerIsClosed(t *testing.T) {
	t.Parallel()
	srv := own(t)
	ips, sockets := listening(t, srv.PID())
	if len(ips) < 2 || len(sockets) < 2 {
		t.Fatalf("it listens on %v and %v only; is this the server?", ips, sockets)
	}
	for _, at := range ips {
		if !at.Addr().IsLoopback() {
			t.Errorf("it listens on %s", at)
		}
	}
	for _, path := range sockets {
		if strings.HasPrefix(path, "@") {
			t.Errorf("it listens on the socket %s, which anybody may connect to", path)
			continue
		}
		if reach := openToOthers(t, path); reach {
			t.Errorf("it listens on the socket %s, which others may connect to", path)
		}
	}
	t.Logf("it listens on %v and %v", ips, sockets)
	refusesOthers(t, srv, ips)
	for path, want := range map[string]fs.FileMode{
		"pki": 0o700 | fs.ModeDir, "audit": 0o700 | fs.ModeDir, "etcd": 0o700 | fs.ModeDir, "kubeconfig": 0o600,
		"audit/audit.log": 0o600, "pki/admin.token": 0o600, "pki/sa.key": 0o600,
	} {
		info, err := os.Stat(filepath.Join(srv.DataDir, path))
		if err != nil {
			t.Error(err)
		} else if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
	err := filepath.WalkDir(srv.DataDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !e.Type().IsRegular() {
			return nil // a pod's file may go meanwhile
		}
		if name := e.Name(); !strings.HasSuffix(name, ".key") && !strings.Contains(name, "token") &&
			!strings.HasSuffix(name, "kubeconfig") {
			return nil
		}
		if openToOthers(t, path) {
			t.Errorf("%s can be read by others", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	srv.nodeAPI(t)
}

// refusesOthers opens connections to what a server listens on beside the ports of its API and its node, whose
// connections are limited: none may be taken. RS-01.
func refusesOthers(t *testing.T, s *Server, ips []netip.AddrPort) {
	t.Helper()
	node, err := s.Client.CoreV1().Nodes().Get(t.Context(), s.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	api, err := url.Parse(s.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(api.Port())
	if err != nil {
		t.Fatal(err)
	}
	limited := []int{port, int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)}
	for _, at := range ips {
		if slices.Contains(limited, int(at.Port())) {
			continue
		}
		if c, err := net.DialTimeout("tcp", at.String(), 500*time.Millisecond); err == nil {
			c.Close()
			t.Errorf("whoever comes to %s is taken", at)
		}
	}
}

// openToOthers tells whether users other than the owner and its group get at a file: by its mode and those of its
// folders.
func openToOthers(t *testing.T, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o007 == 0 {
		return false // gone is closed
	}
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}

// nodeAPI proves that the node's own API wants to know who asks, and asks the API server what they may.
func (s *Server) nodeAPI(t *testing.T) {
	t.Helper()
	node, err := s.Client.CoreV1().Nodes().Get(t.Context(), s.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	host := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)))
	ask := func(config *rest.Config, path string) (int, string) {
		t.Helper()
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		defer client.CloseIdleConnections()
		resp, err := client.Get("https://" + host + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	kube := func(args ...string) string {
		t.Helper()
		out, err := s.Wherry(t.Context(), append([]string{"kubectl", "--kubeconfig", s.Kubeconfig},
			args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %v: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	token := func(account string) *rest.Config {
		kube("create", "serviceaccount", account)
		return &rest.Config{BearerToken: kube("create", "token", account),
			TLSClientConfig: rest.TLSClientConfig{CAData: s.Config.CAData}}
	}
	limited, reader := token("limited"), token("reader")
	kube("create", "rolebinding", "limited", "--clusterrole=admin", "--serviceaccount=default:limited")
	kube("create", "clusterrole", "reads-metrics", "--verb=get", "--resource=nodes/metrics")
	kube("create", "clusterrolebinding", "reader", "--clusterrole=reads-metrics", "--serviceaccount=default:reader")
	nobody := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: s.Config.CAData}}
	wrong := rest.CopyConfig(nobody)
	wrong.BearerToken = "wrong"
	for _, tc := range []struct {
		name, path string
		config     *rest.Config
		code       int
	}{
		{"nobody", "/pods", nobody, 401},
		{"a wrong token", "/pods", wrong, 401},
		{"an administrator", "/pods", s.Config, 200},
		{"an administrator of one namespace", "/pods", limited, 403},
		{"an administrator of one namespace, exec", "/exec/kube-system/x/y?command=id&output=1", limited, 403},
		{"an administrator of one namespace, logs", "/logs/", limited, 403},
		{"one who may read metrics", "/metrics", reader, 200},
		{"one who may read metrics only", "/pods", reader, 403},
	} {
		if code, said := ask(tc.config, tc.path); code != tc.code {
			t.Errorf("node's API, %s: %d %.200s, want %d", tc.name, code, said, tc.code)
		}
	}
	for _, path := range []string{"/logs/../../../../../etc/passwd", "/logs/..%2f..%2f..%2f..%2fetc/passwd",
		"/containerLogs/default/..%2f../x", "/exec/..%2f..%2fetc/passwd/x?command=id&output=1"} {
		if code, said := ask(s.Config, path); code == http.StatusOK || strings.Contains(said, "root:") {
			t.Errorf("node's API, %s: %d %.200s", path, code, said)
		}
		via := s.Client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + s.NodeName + "/proxy" + path)
		if said, err := via.DoRaw(t.Context()); err == nil && strings.Contains(string(said), "root:") {
			t.Errorf("nodes/proxy%s: %.200s", path, said)
		}
	}
	old := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}
	if conn, err := tls.Dial("tcp", host, old); err == nil {
		conn.Close()
		t.Error("the node's API speaks TLS 1.2")
	}
}
