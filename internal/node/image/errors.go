// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wherryproject/wherry/internal/imagename"
)

// Reasons of an Error; they become the waiting reason of the container as they are.
const (
	ErrImagePull              = "ErrImagePull"
	ErrImageNeverPull         = "ErrImageNeverPull"
	InvalidImageName          = "InvalidImageName"
	ImageInspectError         = "ImageInspectError"
	RegistryUnavailable       = "RegistryUnavailable"
	SignatureValidationFailed = "SignatureValidationFailed"
)

// Error says why an image cannot be had.
type Error struct {
	Reason  string // one of the reasons above
	Message string // for the person: what, where, what to do
	Image   string // as the container names it
	Err     error  // what the runtime said; may be nil
	Login   bool   // the registry asks for credentials, or for others
	Plain   bool   // the registry speaks HTTP without TLS
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the runtime's own error.
func (e *Error) Unwrap() error { return e.Err }

// unreachable says that another credential would not help.
func (e *Error) unreachable() bool {
	return e.Reason == RegistryUnavailable || errors.Is(e, errNetwork)
}

var errNetwork = errors.New("registry cannot be reached")

// explain makes an Error of what the runtime said to a pull; withLogin tells whether credentials were given. Runtimes
// hand on text, not kinds, so this goes by the words of containerd, CRI-O and of Go's own network errors; what it does
// not know is passed on whole. (Pure.)
func explain(ref imagename.Reference, withLogin bool, err error) *Error {
	text, code := err.Error(), codes.Unknown
	if s, ok := status.FromError(err); ok {
		text, code = s.Message(), s.Code()
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(strings.ToLower(text), w) {
				return true
			}
		}
		return false
	}
	e := &Error{Reason: ErrImagePull, Image: ref.Given, Err: err}
	from := "registry " + ref.Registry
	switch {
	// These two are agreed between runtimes and kubelets: the reason stands at the start of the text.
	case strings.HasPrefix(text, RegistryUnavailable):
		e.Reason = RegistryUnavailable
		e.Message = fmt.Sprintf("image pull failed for %s because the %s is unavailable%s", ref.Given, from,
			strings.TrimPrefix(text, RegistryUnavailable))
	case strings.HasPrefix(text, SignatureValidationFailed):
		e.Reason = SignatureValidationFailed
		e.Message = fmt.Sprintf("image pull failed for %s because the signature validation failed%s", ref.Given,
			strings.TrimPrefix(text, SignatureValidationFailed))

	case has("no space left on device"):
		e.Message = fmt.Sprintf("no space left on the node for image %s: remove unused images or give the data folder more room", ref.Given)
	case has("no match for platform", "no matching manifest"):
		e.Message = fmt.Sprintf("image %s has no variant for this node's platform %s/%s", ref.Full, runtime.GOOS,
			runtime.GOARCH)
	case has("server gave http response to https client"):
		e.Message = fmt.Sprintf("%s speaks plain HTTP, not HTTPS: give it a certificate, or write server = \"http://%s\" into %s/hosts.toml in the registry hosts folder (<data-dir>/registries)",
			from, ref.Registry, ref.Registry)
		e.Plain = true
	case has("first record does not look like a tls handshake"):
		e.Message = fmt.Sprintf("%s does not speak TLS: check its port; if it is a registry without TLS, write server = \"http://%s\" into %s/hosts.toml in the registry hosts folder (<data-dir>/registries)",
			from, ref.Registry, ref.Registry)
	case has("x509:", "tls:", "certificate"):
		e.Message = fmt.Sprintf("%s shows a certificate this node does not trust: %s (if it is signed by a CA of your own, write server = \"https://%s\" and ca = \"ca.crt\" into %s/hosts.toml in the registry hosts folder, <data-dir>/registries, and put the CA's certificate next to it)",
			from, tail(text, "x509:", "tls:"), ref.Registry, ref.Registry)
	case has("connection refused", "no such host", "i/o timeout", "no route to host", "network is unreachable",
		"connection reset", "tls handshake timeout", "temporary failure in name resolution", "server misbehaving",
		"connection timed out"):
		e.Message = fmt.Sprintf("%s cannot be reached: %s", from,
			tail(text, "dial tcp", "lookup ", "read tcp", "net/http:"))
		e.Err = errors.Join(errNetwork, err)
	case has("429 too many requests", "toomanyrequests"):
		e.Message = fmt.Sprintf("%s takes no more pulls for now (429 too many requests): wait, or add an imagePullSecret of an account with a higher limit", from)
	// A registry that will not say whether the image exists; one that names no credentials at all has asked for some.
	case has("may require authorization", "pull access denied") && !has("no basic auth credentials") && !withLogin:
		e.Message = fmt.Sprintf("image %s not found in %s, or it asks for credentials: check the name, or add an imagePullSecret", ref.Full, from)
		e.Login = true
	case has("401 unauthorized", "403 forbidden", "unauthorized", "denied", "authentication required",
		"authorization failed", "no basic auth credentials"):
		e.Message = fmt.Sprintf("the %s asks for credentials: add an imagePullSecret for it, or log the node in (wherry image login %s)", from, ref.Registry)
		e.Login = true
		if withLogin {
			e.Message = fmt.Sprintf("the %s refuses the credentials it was given for image %s: check the pod's imagePullSecrets and the node's docker config", from, ref.Full)
		}
	case code == codes.NotFound, has("manifest unknown", "manifest_unknown", "name unknown", "404 not found",
		": not found"):
		e.Message = fmt.Sprintf("image %s not found in %s", ref.Full, from)
	case has("500 internal server error", "502 bad gateway", "503 service unavailable", "504 gateway"):
		e.Message = fmt.Sprintf("%s has trouble of its own: %s", from, tail(text, "unexpected status"))
	case code == codes.Canceled: // by the runtime: whoever asks for a pull and calls it off does not read this
		e.Message = fmt.Sprintf("%s sent nothing for too long, so the pull of image %s was given up; check the registry and the network, or raise "+
			"--image-pull-progress-deadline of wherry server (image_pull_progress_timeout of containerd)", from,
			ref.Given)
		e.Err = errors.Join(errNetwork, err)
	case code == codes.Unavailable, errors.Is(err, syscall.ECONNREFUSED):
		e.Message = fmt.Sprintf("the container runtime does not answer, image %s was not pulled: %s", ref.Given, text)
	default:
		e.Message = fmt.Sprintf("failed to pull image %q: %s", ref.Given, text)
	}
	return e
}

// tail cuts the text down to where the first of the marks begins, which is the innermost error.
func tail(text string, marks ...string) string {
	for _, m := range marks {
		if i := strings.Index(text, m); i >= 0 {
			return text[i:]
		}
	}
	return text
}
