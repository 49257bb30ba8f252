// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/filelock"
)

// Away says that nobody answers where a kubeconfig says that a server is.
type Away struct {
	text string
	err  error
}

func (a *Away) Error() string { return a.text }
func (a *Away) Unwrap() error { return a.err }

// Source is where a command has its kubeconfig from.
type Source struct {
	DataDir string // "" unless the kubeconfig is the one of this folder
}

// Guard makes config's connections that do not come about fail with an *Away.
func (s Source) Guard(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err == nil {
				return resp, nil
			}
			if why := unreached(err); why != "" {
				err = &Away{s.words(req.URL.Host, why), err}
			} else if stranger(err) {
				err = &Away{strangerWords(req.URL.Host), err}
			}
			return nil, err
		})
	})
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// unreached is why a connection did not come about; "" if err is about anything else.
func unreached(err error) string {
	dial, ok := errors.AsType[*net.OpError](err)
	if !ok || dial.Op != "dial" || errors.Is(err, context.Canceled) {
		return ""
	}
	for _, errno := range []syscall.Errno{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH} {
		if errors.Is(err, errno) {
			return errno.Error()
		}
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("unknown host %s", name.Name)
	}
	if dial.Timeout() {
		return "timed out"
	}
	return dial.Err.Error()
}

// words say that the server at an address does not answer, and what to do.
func (s Source) words(address, why string) string {
	switch {
	case s.DataDir != "" && filelock.Held(datadir.Lock(s.DataDir)):
		return fmt.Sprintf("the wherry server on %s does not respond yet (%s): it is starting or stopping; try again in a moment", address, why)
	case s.DataDir != "":
		return fmt.Sprintf("the wherry server on %s does not respond (%s): start it with %s", address, why,
			StartCommand(s.DataDir))
	case onThisMachine(address):
		return fmt.Sprintf("the server on %s does not respond (%s): if it is this machine's, start it with %s", address,
			why, StartCommand(ask.DataDir()))
	}
	return fmt.Sprintf("the server on %s does not respond (%s): check that it is running and that the kubeconfig has the right address", address, why)
}

// stranger reports whether the server that answers has a certificate of another authority than the kubeconfig's.
func stranger(err error) bool {
	_, is := errors.AsType[x509.UnknownAuthorityError](err)
	return is
}

// strangerWords say so: most often the data folder was removed, and the kubeconfig is a copy from before.
func strangerWords(address string) string {
	return fmt.Sprintf("the server on %s is not the one that the kubeconfig was written for: its certificate was signed by a different CA; "+
		"get a new kubeconfig, or check the address", address)
}

func onThisMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Words of kubectl and of client-go about a server that they could not connect to.
var (
	kubectlRefused = regexp.MustCompile(`^The connection to the server (\S+) was refused`)
	clientRefused  = regexp.MustCompile(`\w+ "https?://([^/"]+)[^"]*": dial tcp \S+ connect: (connection refused|no route to host|network is unreachable)`)
)

// unknownAuthority is how package x509 says that a certificate's authority is not the one asked for.
const unknownAuthority = "certificate signed by unknown authority"

// IsAway reports whether an error of kubectl's libraries is about a server that does not answer, or is another one.
func IsAway(err error) bool {
	return unreached(err) != "" || clientRefused.MatchString(err.Error()) ||
		strings.Contains(err.Error(), unknownAuthority)
}

// KubectlWords is what kubectl says when it fails, with one sentence in the place of words about a server that does not
// answer. What the server answered itself, which may be about others that do not answer, stays as it is.
func (s Source) KubectlWords(text string) string {
	if strings.Contains(text, "Error from server") {
		return text
	}
	if m := kubectlRefused.FindStringSubmatch(text); m != nil {
		return "error: " + s.words(m[1], syscall.ECONNREFUSED.Error())
	}
	if m := clientRefused.FindStringSubmatch(text); m != nil {
		return "error: " + s.words(m[1], m[2])
	}
	if strings.HasPrefix(text, "Unable to connect to the server: tls:") && strings.Contains(text, unknownAuthority) {
		return "error: the server is not the one that the kubeconfig was written for: its certificate was signed by a different CA; get a new kubeconfig"
	}
	return text
}

// CheckKubeconfig refuses a kubeconfig that the user names, by --kubeconfig or in the environment, and that cannot be
// read: client-go passes over files that are not there.
func CheckKubeconfig(flag, variable string) error {
	if flag != "" {
		return readable("--kubeconfig", flag)
	}
	var first error
	for _, path := range filepath.SplitList(variable) {
		if path == "" {
			continue
		}
		err := readable("KUBECONFIG", path)
		if err == nil {
			return nil // the others may be for later
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func readable(by, path string) error {
	f, err := os.Open(path)
	switch {
	case err == nil:
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return fmt.Errorf("%s is set to %s, which is a folder", by, path)
		}
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is set to %s, which does not exist", by, path)
	case errors.Is(err, fs.ErrPermission):
		return OnlyRoot(path)
	}
	return fmt.Errorf("%s: %w", by, err)
}

// OnlyRoot says what to do about a kubeconfig that the user may not read.
func OnlyRoot(path string) error {
	return fmt.Errorf("only root can read %s: run it with sudo, or copy the file and set KUBECONFIG to the copy", path)
}

// NeverStarted says that there is no server that a command could mean.
func NeverStarted(dataDir string) error {
	return &Away{text: fmt.Sprintf("no server has been started on this machine (%s does not exist): start one with %s, or set KUBECONFIG",
		datadir.Kubeconfig(dataDir), StartCommand(dataDir))}
}
