// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"net/url"
	"slices"
)

// ParamImage is an image: the one of an image exec, or the id that is asked about.
const ParamImage = "image"

// ParamReader says who reads a log or attaches. The node shows those who attach what was printed before, but not what
// they have just read.
const ParamReader = "reader"

// HeaderNote is a header of a granted request for streams: what its user is to know of what is not seen there, and what
// to do. There may be several (IX-10).
const HeaderNote = "Wherry-Note"

// The query parameters of an image exec. Those of the streams and of the command are the kubelet's for exec.
const (
	paramCommand    = "command"
	paramContainer  = "container"
	paramWritable   = "writable"
	paramPullPolicy = "pullPolicy"
	paramUser       = "user"
	paramUserOf     = "userOf"
	paramStdin      = "input"
	paramStdout     = "output"
	paramStderr     = "error"
	paramTTY        = "tty"
)

// ImageExec is a request for an image exec as the API server makes it of a node (IX-01). What it does not say the node
// decides.
type ImageExec struct {
	Image      string
	Command    []string // empty: the image's own
	Container  string   // whose processes the command is to see
	Writable   bool     // the containers' files may be changed
	PullPolicy string
	User       string // UID[:GID]
	UserOf     string // the container whose user it is where root may not be

	Stdin, Stdout, Stderr, TTY bool
}

// Query is the request's query.
func (e ImageExec) Query() url.Values {
	q := url.Values{}
	if len(e.Command) > 0 {
		q[paramCommand] = e.Command
	}
	for name, value := range map[string]string{
		ParamImage: e.Image, paramContainer: e.Container, paramPullPolicy: e.PullPolicy, paramUser: e.User,
		paramUserOf: e.UserOf,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, set := range e.switches() {
		if *set {
			q.Set(name, "1")
		}
	}
	return q
}

// ParseImageExec reads a request's query. It is an error of the client if a parameter that is 0 or 1 is something else;
// nothing else is checked.
func ParseImageExec(q url.Values) (ImageExec, error) {
	e := ImageExec{
		Image: q.Get(ParamImage), Command: q[paramCommand], Container: q.Get(paramContainer),
		PullPolicy: q.Get(paramPullPolicy), User: q.Get(paramUser), UserOf: q.Get(paramUserOf),
	}
	switches := e.switches()
	for name, set := range switches {
		*set = q.Get(name) == "1"
	}
	// always the same error
	for _, name := range []string{paramWritable, paramStdin, paramStdout, paramStderr, paramTTY} {
		if value := q.Get(name); !slices.Contains([]string{"", "0", "1"}, value) {
			return e, fmt.Errorf("%s: %q is not 0 or 1", name, value)
		}
	}
	return e, nil
}

// switches are the parameters that are set or not.
func (e *ImageExec) switches() map[string]*bool {
	return map[string]*bool{
		paramWritable: &e.Writable, paramStdin: &e.Stdin, paramStdout: &e.Stdout, paramStderr: &e.Stderr,
		paramTTY: &e.TTY,
	}
}
