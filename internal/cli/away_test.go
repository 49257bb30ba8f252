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

	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/server"
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
	kubeconfigOf(t, server.Kubeconfig(dir), address)
	want := "error: the wherry server on " + address + " does not respond (connection refused): start it with sudo wherry server --data-dir " + dir + "\n"
	for _, args := range []string{"debug web -- true", "exec web -- true", "cp web:/x " + t.TempDir(), "timeline web", "token list", "debug ls"} {
		if code, out, errs := call(t, "", strings.Fields(args)...); code == 0 || errs != want || out != "" {
			t.Errorf("%s: %d, %q, %q", args, code, out, errs)
		}
	}
}

// A kubeconfig that the user names is named when it is of no use.
func TestKubeconfigMistyped(t *testing.T) {
	alone(t)
	good := filepath.Join(t.TempDir(), "good")
	address := nobody(t)
	kubeconfigOf(t, good, address)
	for variable, want := range map[string]string{
		"/typo":                  "error: KUBECONFIG is set to /typo, which does not exist\n",
		"/typo:/other":           "error: KUBECONFIG is set to /typo, which does not exist\n",
		"/typo:" + good:          "error: the server on " + address + " does not respond (connection refused): if it is this machine's, start it with sudo wherry server\n",
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
	for _, args := range []string{"timeline --kubeconfig FILE web", "exec --kubeconfig FILE web -- true"} {
		code, _, errs := call(t, "", strings.Fields(strings.ReplaceAll(args, "FILE", path))...)
		if code == 0 || !strings.HasPrefix(errs, "error: the server on "+address+" is not the one that the kubeconfig was written for") {
			t.Errorf("%s: %d, %q", args, code, errs)
		}
	}
}

// A run with a kubeconfig of a server that is down says so at once: nobody is starting.
func TestRunServerAway(t *testing.T) {
	alone(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	address := nobody(t)
	kubeconfigOf(t, path, address)
	code, out, errs := call(t, "", "run", "--kubeconfig", path, "-f", manifestFile(t, pod))
	if code != 125 || out != "" || errs != "error: the server on "+address+" does not respond (connection refused): if it is this machine's, start it with sudo wherry server\n" {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
}

// What kubectl says of a server that does not answer becomes one sentence; what a server says of others stays.
func TestKubectlWords(t *testing.T) {
	for said, want := range map[string]string{
		"The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?":                                                                                                        "error: the wherry server on 127.0.0.1:6443 does not respond (connection refused): start it with sudo wherry server --data-dir /none",
		`error: error validating "x": error validating data: failed to download openapi: Get "https://127.0.0.1:6443/openapi/v2?timeout=32s": dial tcp 127.0.0.1:6443: connect: connection refused; if you choose`: "error: the wherry server on 127.0.0.1:6443 does not respond (connection refused): start it with sudo wherry server --data-dir /none",
		`Error from server: error dialing backend: dial tcp 10.0.0.7:10250: connect: connection refused`:                                                                                                           "same",
		`Error from server (InternalError): failed calling webhook "x": Post "https://10.0.0.7:443/x": dial tcp 10.0.0.7:443: connect: connection refused`:                                                         "same",
		"Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority":                                                                                        "error: the server is not the one that the kubeconfig was written for: its certificate was signed by a different CA; get a new kubeconfig",
		`Error from server (NotFound): pods "web" not found`:                                                                                                                                                       "same",
		"": "same",
	} {
		if want == "same" {
			want = said
		}
		if got := (source{"/none"}).kubectlWords(said); got != want {
			t.Errorf("%q\n got %q\nwant %q", said, got, want)
		}
	}
}

// Whose server it is decides what to do about it.
func TestAwayWords(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:6443": "if it is this machine's, start it with sudo wherry server",
		"[::1]:6443":     "if it is this machine's, start it with sudo wherry server",
		"localhost":      "if it is this machine's, start it with sudo wherry server",
		"192.0.2.1:6443": "check that it is running and that the kubeconfig has the right address",
	} {
		if got := (source{}).words(address, "timed out"); !strings.HasSuffix(got, want) || !strings.HasPrefix(got, "the server on "+address+" does not respond (timed out): ") {
			t.Errorf("%s: %q", address, got)
		}
	}
	if got := (source{server.DefaultDataDir}).words("127.0.0.1:6443", "x"); !strings.HasSuffix(got, "start it with sudo wherry server") {
		t.Errorf("%q", got)
	}
}
