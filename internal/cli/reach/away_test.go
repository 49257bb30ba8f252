// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/datadir"
)

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
		if got := (Source{"/none"}).KubectlWords(said); got != want {
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
		if got := (Source{}).words(address, "timed out"); !strings.HasSuffix(got, want) || !strings.HasPrefix(got, "the server on "+address+" does not respond (timed out): ") {
			t.Errorf("%s: %q", address, got)
		}
	}
	if got := (Source{datadir.Default}).words("127.0.0.1:6443", "x"); !strings.HasSuffix(got, "start it with sudo wherry server") {
		t.Errorf("%q", got)
	}
}
