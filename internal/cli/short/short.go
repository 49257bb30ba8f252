// SPDX-License-Identifier: Apache-2.0

package short

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/kubeconf"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/pulling"
	"github.com/wherryproject/wherry/internal/cli/session"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/serverkind"
)

// world is what the program sees.
type world struct {
	args     []string
	getenv   func(string) string
	in       io.Reader
	out, err io.Writer
}

// plan is a session that can be asked for.
type plan struct {
	ask.Session
	server       session.Server
	url          *url.URL
	announcement string        // for the user, when the server is there
	talks        bool          // the user wants to know more than what the command says
	quiet        bool          // the user wants to know nothing else
	pull         *pulling.Wait // what may have to be waited for; nil if no image is needed
	whole        bool          // nothing is left to do when it has ended
	stranger     *url.URL      // the server that is first to be asked whether it is Wherry's; nil if it need not be
	beside       *beside       // what is asked for where it is not; nil: the main program is to see to it
}

// beside is a session of debug.wherry.dev, where that is installed in a cluster that is not Wherry's (DA-05).
type beside struct {
	ask.Session
	url          *url.URL
	announcement string
	talks        bool
}

// plan is the session that the arguments ask for; false if the main program is to see to them.
func (w world) plan() (*plan, bool) {
	if len(w.args) < 3 || kubectls(filepath.Base(w.args[0])) || w.proxied() {
		return nil, false
	}
	switch w.args[1] {
	case "debug":
		return w.debug(w.args[2:])
	case "exec":
		return w.exec(w.args[2:])
	}
	return nil, false
}

// kubectls recognizes a name by which the program is kubectl, or completes words for kubectl: what follows is no
// command of wherry's to carry out.
func kubectls(name string) bool {
	return strings.HasSuffix(name, "kubectl") || strings.HasPrefix(name, "kubectl_complete")
}

func (w world) debug(args []string) (*plan, bool) {
	d, where := &ask.Debug{}, &ask.Where{}
	fl := flags()
	d.AddFlags(fl)
	where.AddFlags(fl)
	if fl.Parse(args) != nil || d.Container != "" {
		return nil, false
	}
	if fl.NArg() > 0 && fl.ArgsLenAtDash() != 0 && subcommand("debug", fl.Arg(0)) {
		return nil, false
	}
	pod, command, err := ask.PodAndCommand("wherry debug", d.Pod, fl.Args(), fl.ArgsLenAtDash())
	if err != nil || onHost(pod) {
		return nil, false
	}
	if d.Complete(fl, w.in) != nil {
		return nil, false
	}
	p := &plan{Session: d.First(pod, command), quiet: d.Quiet, beside: &beside{talks: !d.Quiet,
		Session: d.Shell(pod, command, false, ask.Limits{}, w.getenv("TERM"))}}
	if p.talks = d.Talks(w.err); p.talks {
		p.announcement = d.Announcement(pod, debugask.FirstName)
		p.beside.announcement = d.AnnouncementBeside(pod)
	}
	return w.at(where, p)
}

// onHost reports whether a target is on this machine, or is meant to be: a pod's name has no colon.
func onHost(name string) bool { return strings.Contains(name, ":") }

// subcommand reports whether a command has one of that name below it, or might have.
func subcommand(command, name string) bool {
	return name == "help" || slices.Contains(commandsOf(command), name)
}

func (w world) exec(args []string) (*plan, bool) {
	e, where := &ask.Exec{}, &ask.Where{}
	fl := flags()
	e.AddFlags(fl)
	where.AddFlags(fl)
	if fl.Parse(args) != nil || fl.NArg() == 0 || fl.ArgsLenAtDash() != 0 && subcommand("exec", fl.Arg(0)) {
		return nil, false
	}
	pod, command, err := ask.PodAndCommand("wherry exec", "", fl.Args(), fl.ArgsLenAtDash())
	if err != nil || onHost(pod) {
		return nil, false
	}
	s, err := e.Session(pod, command, w.in)
	if err != nil {
		return nil, false
	}
	p := &plan{Session: s, whole: true, quiet: e.Quiet}
	if s.InCluster != nil {
		p.beside = &beside{Session: *s.InCluster}
	}
	return w.at(where, p)
}

func flags() *pflag.FlagSet {
	fl := pflag.NewFlagSet("wherry", pflag.ContinueOnError)
	fl.SetOutput(io.Discard)
	return fl
}

// at finds the server.
func (w world) at(where *ask.Where, p *plan) (*plan, bool) {
	path := where.Kubeconfig
	if path == "" {
		path = where.Variable(w.getenv)
	}
	if path == "" {
		path = datadir.Kubeconfig(where.DataDir)
	}
	target, err := kubeconf.Read(path, where.Context)
	if err != nil {
		return nil, false
	}
	if where.Namespace != "" {
		target.Namespace = where.Namespace
	}
	p.server = target.Server
	if p.url, err = p.URL(target.Base, target.Namespace); err != nil {
		return nil, false
	}
	if p.Wherrys() && path != datadir.Kubeconfig(where.DataDir) {
		p.stranger = target.Base
		if p.beside != nil {
			if p.beside.url, err = p.beside.URL(target.Base, target.Namespace); err != nil {
				return nil, false
			}
		}
	}
	if container := pulling.Container(p.Query); container != "" && !p.quiet {
		p.pull = &pulling.Wait{Container: container, Events: pulling.Events(asker(target.Server), target.Base,
			target.Namespace, p.Pod), Show: pulling.To(w.err, p.TTY)}
		if path == datadir.Kubeconfig(where.DataDir) {
			p.pull.Node = pulling.Node(datadir.Socket(where.DataDir))
		}
	}
	return p, true
}

// handshakes are how many earlier ones with a server are remembered: a later connection is made in less time then.
const handshakes = 4

// questioner asks several things by one connection, which is closed at the end.
func questioner(s session.Server) (ask *http.Client, end func()) {
	line := &http.Transport{TLSClientConfig: s.TLS.Clone()}
	return &http.Client{Transport: withHeader{line, s.Header}}, line.CloseIdleConnections
}

// asker asks what is not a session.
func asker(s session.Server) *http.Client {
	return &http.Client{Transport: withHeader{&http.Transport{TLSClientConfig: s.TLS.Clone(), DisableKeepAlives: true},
		s.Header}}
}

// withHeader adds the header that shows who asks.
type withHeader struct {
	http.RoundTripper
	header http.Header
}

// RoundTrip implements http.RoundTripper.
func (h withHeader) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	maps.Copy(req.Header, h.header)
	return h.RoundTripper.RoundTrip(req)
}

// proxied reports whether there may be a proxy on the way.
func (w world) proxied() bool {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		if w.getenv(name) != "" {
			return true
		}
	}
	return false
}

// carry carries the session; nil if the server could not be reached, or is not Wherry's where it must be.
func (w world) carry(ctx context.Context, p *plan) *Outcome {
	server := p.server
	if p.stranger != nil {
		if server.TLS = server.TLS.Clone(); server.TLS == nil {
			server.TLS = &tls.Config{}
		}
		server.TLS.ClientSessionCache = tls.NewLRUClientSessionCache(handshakes)
		ask, end := questioner(server)
		defer end()
		is, err := serverkind.Ask(ctx, ask, p.stranger)
		switch {
		case err != nil:
			return nil
		case !is:
			return w.carryBeside(ctx, p, server, ask)
		}
	}
	server.Connected = func() { w.say(p, p.announcement) }
	if p.talks {
		server.Note = func(text string) { w.say(p, text) }
	}
	out, errs := p.Outputs(w.out, w.err)
	defer plain.Flush(out)
	defer plain.Flush(errs)
	r := session.Request{Dial: server.Dial, URL: p.url, Stdout: out, Stderr: errs, TTY: p.TTY, DetachKeys: p.DetachKeys}
	if p.Stdin {
		r.Stdin = w.in
	}
	if p.pull != nil {
		r.Meanwhile = p.pull.Follow
	}
	code, err := r.Run(ctx)
	if err != nil && !session.Reached(err) || errors.Is(err, session.ErrNoWebSocket) {
		return nil
	}
	return &Outcome{url: p.url.String(), code: code, err: err}
}

// carryBeside carries the session of debug.wherry.dev, where that is installed. What is refused the main program asks
// for again: it knows what to do then, and nothing has been done.
func (w world) carryBeside(ctx context.Context, p *plan, server session.Server, ask *http.Client) *Outcome {
	b := p.beside
	if b == nil {
		return nil
	}
	if status, err := serverkind.Serves(ctx, ask, p.stranger, wire.Base); err != nil ||
		status != http.StatusOK {
		return nil
	}
	server.Connected = func() { w.say(p, b.announcement) }
	if b.talks {
		server.Note = func(text string) { w.say(p, text) }
	}
	out, errs := b.Outputs(w.out, w.err)
	defer plain.Flush(out)
	defer plain.Flush(errs)
	r := session.Request{Dial: server.Dial, URL: b.url, Stdout: out, Stderr: errs, TTY: b.TTY}
	if b.Stdin {
		r.Stdin = w.in
	}
	code, err := r.Run(ctx)
	if _, refused := errors.AsType[*session.Refusal](err); refused || err != nil && !session.Reached(err) ||
		errors.Is(err, session.ErrNoWebSocket) {
		return nil
	}
	p.whole = true // the pod was not changed, so that nothing is left to do in it
	return &Outcome{url: b.url.String(), code: code, err: err}
}

// say prints a message to the user of a session. The terminal may be in raw mode, where a new line does not begin at
// the left by itself.
func (w world) say(p *plan, text string) {
	end := "\n"
	if p.TTY {
		end = "\r\n"
	}
	if text != "" {
		_, _ = io.WriteString(plain.Own(w.err), plain.Text(text)+end)
	}
}
