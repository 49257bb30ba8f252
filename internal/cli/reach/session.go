// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/pulling"
	"github.com/wherryproject/wherry/internal/cli/session"
)

// Notices are for the user of a session: before the server is asked, and what the server says beside the streams. Both
// may be nil. If pulls is set, the user is shown the pull that a session waits for.
type Notices struct {
	Before func()
	Note   func(text string)
	Pulls  bool
}

// Stream carries a session and returns the command's exit code; a refusal is an *apierrors.StatusError.
func (c *Client) Stream(ctx context.Context, t cmdline.Terminal, namespace string, s ask.Session,
	show Notices) (int, error) {
	base, _, err := rest.DefaultServerUrlFor(c.Config)
	if err != nil {
		return session.ExitFailed, err
	}
	u, err := s.URL(base, namespace)
	if err != nil {
		return cmdline.ExitUsage, err
	}
	if !s.Wherrys() || !t.Had.Beside() {
		if code, err, had := t.Had.Take(u); had {
			return code, asStatus(err)
		}
	}
	if s.Wherrys() {
		if foreign, err := c.foreign(ctx, base); err != nil {
			return session.ExitFailed, err
		} else if foreign != nil {
			if !foreign.Serves || s.InCluster == nil {
				return session.ExitFailed, foreign
			}
			s = *s.InCluster
			if u, err = s.URL(base, namespace); err != nil {
				return cmdline.ExitUsage, err
			}
			if code, err, had := t.Had.Take(u); had {
				return code, asStatus(err)
			}
			show.Pulls = false // the agents' pulls are not events
		}
	}
	if show.Before != nil {
		show.Before()
	}
	out, errs := s.Outputs(t.Out, t.Err)
	defer plain.Flush(out)
	defer plain.Flush(errs)
	r := session.Request{Dial: dialer(c.Config, show.Note), URL: u, Otherwise: overSPDY(c.Config, u), Stdout: out,
		Stderr: errs, TTY: s.TTY, DetachKeys: s.DetachKeys}
	if s.Stdin {
		r.Stdin = t.In
	}
	if show.Pulls {
		r.Meanwhile = c.showPull(t, base, namespace, s)
	}
	code, err := r.Run(ctx)
	return code, roleAdvice(asStatus(err), s.Subresource, namespace)
}

// showPull shows the pull that a session waits for; nil if it needs no image.
func (c *Client) showPull(t cmdline.Terminal, base *url.URL, namespace string, s ask.Session) func(context.Context) {
	container := pulling.Container(s.Query)
	if container == "" {
		return nil
	}
	return func(ctx context.Context) {
		asker, err := rest.HTTPClientFor(c.Config)
		if err != nil {
			return // the session itself will say why
		}
		w := pulling.Wait{Container: container, Events: pulling.Events(asker, base, namespace, s.Pod),
			Show: pulling.To(t.Err, s.TTY)}
		if c.socket != "" {
			w.Node = pulling.Node(c.socket)
		}
		w.Follow(ctx)
	}
}

// asStatus makes the API's own error of a refusal.
func asStatus(err error) error {
	refusal, ok := errors.AsType[*session.Refusal](err)
	if !ok {
		return err
	}
	s := metav1.Status{Status: metav1.StatusFailure, Message: refusal.Status.Message, Code: int32(refusal.Status.Code)}
	if refusal.Raw != nil {
		if err := json.Unmarshal(refusal.Raw, &s); err != nil {
			return refusal
		}
	}
	return &apierrors.StatusError{ErrStatus: s}
}

// dialer connects as a kubeconfig says, whatever that is: programs that give credentials, proxies, impersonation.
func dialer(config *rest.Config, note func(string)) session.Dial {
	return func(ctx context.Context, u *url.URL) (*websocket.Conn, error) {
		h := &handshake{server: session.Server{Proxy: config.Proxy, Note: note}}
		if h.server.Proxy == nil {
			h.server.Proxy = http.ProxyFromEnvironment
		}
		var err error
		if h.server.TLS, err = rest.TLSConfigFor(config); err != nil {
			return nil, err
		}
		through, err := rest.HTTPWrappersForConfig(config, h)
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, err
		}
		resp, err := through.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		resp.Body.Close()
		return h.conn, nil
	}
}

// handshake is the last of the round trippers that credentials are added by.
type handshake struct {
	server session.Server
	conn   *websocket.Conn
}

// RoundTrip implements http.RoundTripper.
func (h *handshake) RoundTrip(req *http.Request) (_ *http.Response, err error) {
	h.server.Header = req.Header
	if h.conn, err = h.server.Dial(req.Context(), req.URL); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: http.NoBody, Request: req}, nil
}

// overSPDY carries streams to a server that does not speak WebSocket as sessions do.
func overSPDY(config *rest.Config, u *url.URL) func(context.Context, session.Streams) (int, error) {
	return func(ctx context.Context, s session.Streams) (int, error) {
		executor, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
		if err != nil {
			return session.ExitFailed, err
		}
		o := remotecommand.StreamOptions{Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Tty: s.TTY}
		if s.Sizes != nil {
			o.TerminalSizeQueue = sizes{ctx, s.Sizes}
		}
		return spdyCode(executor.StreamWithContext(ctx, o))
	}
}

// spdyCode takes the exit code out of how a stream over SPDY ended.
func spdyCode(err error) (int, error) {
	if err == nil {
		return 0, nil
	}
	if ended, ok := errors.AsType[exec.CodeExitError](err); ok {
		return ended.Code, nil
	}
	if upgrade, ok := errors.AsType[*httpstream.UpgradeFailureError](err); ok && upgrade.Cause != nil {
		err = upgrade.Cause
	}
	if refusal, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return session.ExitRefused, refusal
	}
	return session.Failure(err.Error())
}

// sizes implements remotecommand.TerminalSizeQueue.
type sizes struct {
	ctx  context.Context
	from <-chan session.Size
}

// Next is part of remotecommand.TerminalSizeQueue.
func (s sizes) Next() *remotecommand.TerminalSize {
	select {
	case <-s.ctx.Done():
		return nil
	case size := <-s.from:
		return &remotecommand.TerminalSize{Width: size.Width, Height: size.Height}
	}
}
