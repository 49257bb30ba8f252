// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/pki"
)

// nobody is an address of this machine where nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// kubeconfigOf writes a kubeconfig of a server.
func kubeconfigOf(t *testing.T, path, address string) {
	t.Helper()
	text, err := pki.WriteKubeconfig("https://"+address, nil, "me", &clientcmdapi.AuthInfo{Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Commands that find nobody where the server should be say so in one sentence, with the command that starts it.
func TestServerAway(t *testing.T) {
	dir := alone(t)
	address := nobody(t)
	kubeconfigOf(t, datadir.Kubeconfig(dir), address)
	want := "error: the wherry server on " + address + " does not respond (connection refused): start it with sudo wherry server --data-dir " + dir + "\n"
	for _, args := range []string{"debug web -- true", "exec web -- true", "cp web:/x " + t.TempDir(), "timeline web", "why web", "token list", "debug ls", "cluster status", "cluster install", "cluster uninstall"} {
		if code, out, errs := call(t, "", strings.Fields(args)...); code == 0 || errs != want || out != "" {
			t.Errorf("%s: %d, %q, %q", args, code, out, errs)
		}
	}
}

// A kubeconfig that the user names is named when it is of no use.
func TestKubeconfigMistyped(t *testing.T) {
	dir := alone(t)
	good := filepath.Join(t.TempDir(), "good")
	address := nobody(t)
	kubeconfigOf(t, good, address)
	for variable, want := range map[string]string{
		"/typo":                  "error: KUBECONFIG is set to /typo, which does not exist\n",
		"/typo:/other":           "error: KUBECONFIG is set to /typo, which does not exist\n",
		"/typo:" + good:          "error: the server on " + address + " does not respond (connection refused): if it is this machine's, start it with sudo wherry server --data-dir " + dir + "\n",
		filepath.Dir(good) + "/": "error: KUBECONFIG is set to " + filepath.Dir(good) + "/, which is a folder\n",
	} {
		t.Setenv("KUBECONFIG", variable)
		if code, _, errs := call(t, "", "timeline", "web"); code != 1 || !strings.HasPrefix(errs, want) {
			t.Errorf("%s: %d, %q", variable, code, errs)
		}
	}
	if code, _, errs := call(t, "", "timeline", "web", "--kubeconfig", "/typo"); code != 1 || errs != "error: --kubeconfig is set to /typo, which does not exist\n" {
		t.Errorf("--kubeconfig: %d, %q", code, errs)
	}
}

// A server of another authority is not the kubeconfig's: the data folder was removed, and the kubeconfig is from before.
func TestServerOfAnotherAuthority(t *testing.T) {
	alone(t)
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	ca, err := pki.LoadOrCreate(t.TempDir(), "former")
	if err != nil {
		t.Fatal(err)
	}
	address := srv.Listener.Addr().String()
	text, err := pki.WriteKubeconfig("https://"+address, ca.CertPEM(), "me", &clientcmdapi.AuthInfo{Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"timeline --kubeconfig FILE web", "why --kubeconfig FILE web", "exec --kubeconfig FILE web -- true"} {
		code, _, errs := call(t, "", strings.Fields(strings.ReplaceAll(args, "FILE", path))...)
		if code == 0 || !strings.HasPrefix(errs, "error: the server on "+address+" is not the one that the kubeconfig was written for") {
			t.Errorf("%s: %d, %q", args, code, errs)
		}
	}
}

// A run with a kubeconfig of a server that is down says so at once: nobody is starting.
func TestRunServerAway(t *testing.T) {
	dir := alone(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	address := nobody(t)
	kubeconfigOf(t, path, address)
	code, out, errs := call(t, "", "run", "--kubeconfig", path, "-f", manifestFile(t, pod))
	if code != 125 || out != "" || errs != "error: the server on "+address+" does not respond (connection refused): if it is this machine's, start it with sudo wherry server --data-dir "+dir+"\n" {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
}
