// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
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
	Err     error  // what the runtime answered; may be nil
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

// explain makes an Error of what the runtime answered to a pull; withLogin says whether credentials were given.
// Runtimes hand on text, not kinds, so this goes by the words of containerd, CRI-O and of Go's own network errors; what
// it does not know is passed on whole. (Pure.)
func explain(ref imagename.Reference, withLogin bool, err error) *Error {
	f := fault{ref: ref, withLogin: withLogin, err: err, text: err.Error(), code: codes.Unknown,
		from: "registry " + ref.Registry}
	if s, ok := status.FromError(err); ok {
		f.text, f.code = s.Message(), s.Code()
	}
	e := &Error{Reason: ErrImagePull, Image: ref.Given, Err: err}
	if !f.agreed(e) && !f.connection(e) && !f.refusal(e) {
		f.other(e)
	}
	return e
}

// fault is what a runtime says of a pull that failed.
type fault struct {
	ref       imagename.Reference
	withLogin bool
	err       error
	text      string
	code      codes.Code
	from      string // the registry, in words
}

// has reports whether the runtime's words have one of some, which are in lower case.
func (f fault) has(words ...string) bool {
	text := strings.ToLower(f.text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// agreed knows what is agreed between runtimes and kubelets: the reason stands at the start of the text.
func (f fault) agreed(e *Error) bool {
	switch {
	case strings.HasPrefix(f.text, RegistryUnavailable):
		e.Reason = RegistryUnavailable
		e.Message = fmt.Sprintf("image pull failed for %s because the %s is unavailable%s", f.ref.Given, f.from,
			strings.TrimPrefix(f.text, RegistryUnavailable))
	case strings.HasPrefix(f.text, SignatureValidationFailed):
		e.Reason = SignatureValidationFailed
		e.Message = fmt.Sprintf("image pull failed for %s because the signature validation failed%s", f.ref.Given,
			strings.TrimPrefix(f.text, SignatureValidationFailed))
	default:
		return false
	}
	return true
}

// connection knows the faults of the way to a registry, and of the node's disk.
func (f fault) connection(e *Error) bool {
	switch {
	case f.has("no space left on device"):
		e.Message = fmt.Sprintf("no space left on the node for image %s: remove unused images or give the data folder more room", f.ref.Given)
	case f.has("no match for platform", "no matching manifest"):
		e.Message = fmt.Sprintf("image %s has no variant for this node's platform %s/%s", f.ref.Full, runtime.GOOS,
			runtime.GOARCH)
	case f.has("server gave http response to https client"):
		e.Message = fmt.Sprintf("%s speaks plain HTTP, not HTTPS: give it a certificate, or write server = \"http://%s\" into %s/hosts.toml in the registry hosts folder (<data-dir>/registries)",
			f.from, f.ref.Registry, f.ref.Registry)
		e.Plain = true
	case f.has("first record does not look like a tls handshake"):
		e.Message = fmt.Sprintf("%s does not speak TLS: check its port; if it is a registry without TLS, write server = \"http://%s\" into %s/hosts.toml in the registry hosts folder (<data-dir>/registries)",
			f.from, f.ref.Registry, f.ref.Registry)
	case f.has("x509:", "tls:", "certificate"):
		e.Message = fmt.Sprintf("%s shows a certificate this node does not trust: %s (if it is signed by a CA of your own, write server = \"https://%s\" and ca = \"ca.crt\" into %s/hosts.toml in the registry hosts folder, <data-dir>/registries, and put the CA's certificate next to it)",
			f.from, tail(f.text, "x509:", "tls:"), f.ref.Registry, f.ref.Registry)
	case f.has("unexpected eof", "short read"):
		e.Message = fmt.Sprintf("%s broke the connection off while image %s was pulled: the next pull fetches what is missing; if it happens again, check the registry and the network", f.from, f.ref.Given)
		e.Err = errors.Join(errNetwork, f.err)
	case f.has("unexpected commit digest"):
		e.Message = fmt.Sprintf("what %s sent for image %s does not match its digest: the registry, or something in between, damages layers; push the image again (%s)",
			f.from, f.ref.Given, tail(f.text, "unexpected commit digest"))
	case f.has("connection refused", "no such host", "i/o timeout", "no route to host", "network is unreachable",
		"connection reset", "tls handshake timeout", "temporary failure in name resolution", "server misbehaving",
		"connection timed out"):
		e.Message = fmt.Sprintf("%s cannot be reached: %s", f.from,
			tail(f.text, "dial tcp", "lookup ", "read tcp", "net/http:"))
		e.Err = errors.Join(errNetwork, f.err)
	default:
		return false
	}
	return true
}

// refusal knows a registry's refusals.
func (f fault) refusal(e *Error) bool {
	switch {
	case f.has("429 too many requests", "toomanyrequests"):
		e.Message = fmt.Sprintf("%s takes no more pulls for now (429 too many requests): wait, or add an imagePullSecret of an account with a higher limit", f.from)
	// A registry that will not say whether the image exists; one that names no credentials at all has asked for some.
	case f.has("may require authorization", "pull access denied") && !f.has("no basic auth credentials") &&
		!f.withLogin:
		e.Message = fmt.Sprintf("image %s not found in %s, or it asks for credentials: check the name, or add an imagePullSecret", f.ref.Full, f.from)
		e.Login = true
	case f.has("401 unauthorized", "403 forbidden", "unauthorized", "denied", "authentication required",
		"authorization failed", "no basic auth credentials"):
		e.Message = fmt.Sprintf("the %s asks for credentials: add an imagePullSecret for it, or log the node in (wherry image login %s)", f.from, f.ref.Registry)
		e.Login = true
		if f.withLogin {
			e.Message = fmt.Sprintf("the %s refuses the credentials it was given for image %s: check the pod's imagePullSecrets and the node's docker config", f.from, f.ref.Full)
		}
	default:
		return false
	}
	return true
}

// other explains the rest.
func (f fault) other(e *Error) {
	switch {
	case f.code == codes.NotFound, f.has("manifest unknown", "manifest_unknown", "name unknown", "404 not found",
		": not found"):
		e.Message = fmt.Sprintf("image %s not found in %s", f.ref.Full, f.from)
	case f.has("500 internal server error", "502 bad gateway", "503 service unavailable", "504 gateway"):
		e.Message = fmt.Sprintf("%s has trouble of its own: %s", f.from, tail(f.text, "unexpected status"))
	case f.code == codes.Canceled: // by the runtime: whoever asks for a pull and calls it off does not read this
		e.Message = fmt.Sprintf("%s sent nothing, or next to nothing, for too long, so the pull of image %s was given up; check the registry and the network, or raise "+
			"--image-pull-progress-deadline of wherry server (image_pull_progress_timeout of containerd)", f.from,
			f.ref.Given)
		e.Err = errors.Join(errNetwork, f.err)
	case f.code == codes.Unavailable, errors.Is(f.err, syscall.ECONNREFUSED):
		e.Message = fmt.Sprintf("the container runtime does not answer, image %s was not pulled: %s", f.ref.Given,
			f.text)
	default:
		e.Message = fmt.Sprintf("failed to pull image %q: %s", f.ref.Given, f.text)
	}
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
