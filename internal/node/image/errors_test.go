// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wherryproject/wherry/internal/imagename"
)

// TestExplain proves PL-03 and PL-15 on texts as containerd gives them.
func TestExplain(t *testing.T) {
	const pre = `failed to pull and unpack image "r.example/x:v1": failed to resolve image: `
	for name, c := range map[string]struct {
		code   codes.Code
		text   string
		login  bool
		reason string
		want   string
	}{
		"not found":       {codes.NotFound, pre + `r.example/x:v1: not found`, false, ErrImagePull, "image r.example/x:v1 not found in registry r.example"},
		"unknown":         {codes.Unknown, pre + `MANIFEST_UNKNOWN: manifest unknown`, true, ErrImagePull, "image r.example/x:v1 not found in registry r.example"},
		"denied":          {codes.Unknown, pre + `pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`, false, ErrImagePull, "image r.example/x:v1 not found in registry r.example, or it asks for credentials: check the name, or add an imagePullSecret"},
		"basic":           {codes.Unknown, pre + `pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials`, false, ErrImagePull, "the registry r.example asks for credentials: add an imagePullSecret for it"},
		"401":             {codes.Unknown, pre + `unexpected status from HEAD request to https://r.example/v2/x/manifests/v1: 401 Unauthorized`, false, ErrImagePull, "the registry r.example asks for credentials: add an imagePullSecret for it"},
		"401 with login":  {codes.Unknown, pre + `failed to authorize: 401 Unauthorized`, true, ErrImagePull, "the registry r.example refuses the credentials it was given"},
		"refused":         {codes.Unknown, pre + `failed to do request: Head "https://r.example/v2/": dial tcp 192.0.2.1:443: connect: connection refused`, false, ErrImagePull, "registry r.example cannot be reached: dial tcp 192.0.2.1:443: connect: connection refused"},
		"no such host":    {codes.Unknown, pre + `Head "https://r.example/v2/": dial tcp: lookup r.example on 127.0.0.53:53: no such host`, false, ErrImagePull, "registry r.example cannot be reached: dial tcp: lookup r.example on 127.0.0.53:53: no such host"},
		"x509":            {codes.Unknown, pre + `tls: failed to verify certificate: x509: certificate signed by unknown authority`, false, ErrImagePull, "registry r.example shows a certificate this node does not trust: x509: certificate signed by unknown authority"},
		"whose CA":        {codes.Unknown, pre + `x509: certificate signed by unknown authority`, false, ErrImagePull, `ca = "ca.crt" into r.example/hosts.toml`},
		"no TLS":          {codes.Unknown, pre + `tls: first record does not look like a TLS handshake`, false, ErrImagePull, "registry r.example does not speak TLS: check its port"},
		"plain http":      {codes.Unknown, pre + `http: server gave HTTP response to HTTPS client`, false, ErrImagePull, "registry r.example speaks plain HTTP"},
		"disk full":       {codes.Unknown, `failed to extract layer: write /var/x: no space left on device`, false, ErrImagePull, "no space left on the node for image r.example/x:v1"},
		"platform":        {codes.NotFound, `no match for platform in manifest: not found`, false, ErrImagePull, "image r.example/x:v1 has no variant for this node's platform linux/"},
		"cut off":         {codes.Unknown, pre + `short read: expected 64901120 bytes but got 48675840: unexpected EOF`, false, ErrImagePull, "registry r.example broke the connection off while image r.example/x:v1 was pulled: the next pull fetches what is missing"},
		"damaged":         {codes.FailedPrecondition, pre + `unexpected commit digest sha256:12, expected sha256:34: failed precondition`, false, ErrImagePull, "what registry r.example sent for image r.example/x:v1 does not match its digest"},
		"limit":           {codes.Unknown, pre + `429 Too Many Requests`, false, ErrImagePull, "takes no more pulls for now"},
		"5xx":             {codes.Unknown, pre + `unexpected status from HEAD request to https://r: 503 Service Unavailable`, false, ErrImagePull, "has trouble of its own: unexpected status from HEAD"},
		"runtime is away": {codes.Unavailable, `error reading from server: EOF`, false, ErrImagePull, "the container runtime does not answer"},
		"unavailable":     {codes.Unknown, `RegistryUnavailable: down for today`, false, RegistryUnavailable, "because the registry r.example is unavailable: down for today"},
		"signature":       {codes.Unknown, `SignatureValidationFailed: no key`, false, SignatureValidationFailed, "because the signature validation failed: no key"},
		"other":           {codes.Unknown, `a new kind of trouble`, false, ErrImagePull, `failed to pull image "r.example/x:v1": a new kind of trouble`},
	} {
		t.Run("PL-03 PL-15 "+name, func(t *testing.T) {
			ref, err := imagename.Parse("r.example/x:v1")
			if err != nil {
				t.Fatal(err)
			}
			cause := status.Error(c.code, c.text)
			got := explain(ref, c.login, cause)
			if got.Reason != c.reason || !strings.Contains(got.Error(), c.want) {
				t.Errorf("got  %s: %s\nwant %s: %s", got.Reason, got, c.reason, c.want)
			}
			if !errors.Is(got, cause) {
				t.Error("the runtime's error is lost")
			}
		})
	}
}
