// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// Session is a streaming request on a subresource of a pod.
type Session struct {
	Pod         string
	Subresource string // exec or attach
	Query       url.Values
	Stdin, TTY  bool
	DetachKeys  bool // the user may leave with Ctrl-P Ctrl-Q

	// InCluster is the same request in the words of debug.wherry.dev, for clusters whose API server is not Wherry's;
	// nil where there are none.
	InCluster *Session

	api string // the path of its API; empty: that of pods
}

// Wherrys reports whether the request is one that Wherry's API server alone understands. Another takes it for an exec
// in the pod's own container, and must not get it.
func (s Session) Wherrys() bool {
	return s.api == "" && (s.Query.Has(debugask.ParamImage) || s.Query.Has(debugask.ParamName) ||
		s.Query.Has(debugask.ParamExecImage))
}

// Outputs are the writers for what the command writes. With a terminal of its own, all of it reaches the user's: that
// is what such a session is for. Without one, a terminal is given what it cannot obey, and everything else every byte.
func (s Session) Outputs(out, errs io.Writer) (stdout, stderr io.Writer) {
	if s.TTY {
		return plain.Own(out), plain.Own(errs)
	}
	return plain.Output(out), plain.Output(errs)
}

func newSession(pod, subresource string, q url.Values, stdin, tty bool) Session {
	for name, on := range map[string]bool{"stdin": stdin, "stdout": true, "stderr": !tty, "tty": tty} {
		if on {
			q.Set(name, "true")
		}
	}
	return Session{Pod: pod, Subresource: subresource, Query: q, Stdin: stdin, TTY: tty}
}

// URL is where the session is asked for, at a server whose API is at base. It fails for names that would lead
// elsewhere.
func (s Session) URL(base *url.URL, namespace string) (*url.URL, error) {
	for _, n := range []struct{ kind, name string }{{"namespace", namespace}, {"pod", s.Pod}} {
		if n.name == "" || n.name == "." || n.name == ".." || strings.ContainsAny(n.name, "/%") {
			return nil, fmt.Errorf("%q is not a %s name: give the name alone, as in kubectl get %ss", n.name, n.kind,
				n.kind)
		}
	}
	u := base.JoinPath(cmp.Or(s.api, "api/v1"), "namespaces", namespace, "pods", s.Pod, s.Subresource)
	u.RawQuery = s.Query.Encode()
	return u, nil
}

// PodAndCommand splits the arguments of command: POD [-- COMMAND], or -- COMMAND if the pod is given already. dash is
// how many came before the --, or -1.
func PodAndCommand(command, pod string, args []string, dash int) (string, []string, error) {
	before, argv := args, []string(nil)
	if dash >= 0 {
		before, argv = args[:dash], args[dash:]
	}
	if pod == "" {
		if len(before) == 0 {
			return "", nil, fmt.Errorf("no pod given: name it before --")
		}
		pod, before = before[0], before[1:]
	}
	if len(before) > 0 {
		return "", nil, fmt.Errorf("unexpected %q: the command goes after --, as in: %s %s -- %s", before[0], command,
			pod, strings.Join(before, " "))
	}
	return strings.TrimPrefix(strings.TrimPrefix(pod, "pods/"), "pod/"), argv, nil
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool { return plain.IsTerminal(stream) }

// Colours reports whether a stream is a terminal that wants more than plain output.
func Colours(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(w)
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}
