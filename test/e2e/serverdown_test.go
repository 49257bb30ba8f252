// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wherryproject/wherry/internal/pki"
)

// TestServerDown: whatever asks a server that is not there says so in one sentence, with the command that starts it; kubectl too, and the
// commands that begin in the short program. A kubeconfig that is not there is named.
func TestServerDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	text, err := pki.WriteKubeconfig("https://"+address, nil, "me", &clientcmdapi.AuthInfo{Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	down := "error: the wherry server on " + address + " does not respond (connection refused): start it with sudo wherry server --data-dir " + dir + "\n"
	pod := filepath.Join(dir, "pod.yaml")
	if err := os.WriteFile(pod, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main, image: i}]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"kubectl", "--data-dir", dir, "get", "pods"}, {"kubectl", "apply", "-f", pod, "--data-dir=" + dir}, {"kubectl", "--data-dir", dir, "logs", "web"},
		{"debug", "--data-dir", dir, "web", "--", "true"}, {"exec", "--data-dir", dir, "web", "--", "true"}, {"timeline", "--data-dir", dir, "web"},
	} {
		if r := runWherry(t, nil, args...); r.Code == 0 || r.Err != down || r.Out != "" {
			t.Errorf("%s: exit code %d\n%s%s\nwant %s", r.Line, r.Code, r.Out, r.Err, down)
		}
	}
	for _, args := range [][]string{{"kubectl", "get", "pods"}, {"debug", "web"}, {"run", "-f", pod}} {
		r := runWherry(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "KUBECONFIG=/typo") }, args...)
		if r.Code == 0 || r.Err != "error: KUBECONFIG is set to /typo, which does not exist\n" {
			t.Errorf("%s: exit code %d\n%s", r.Line, r.Code, r.Err)
		}
	}
}
