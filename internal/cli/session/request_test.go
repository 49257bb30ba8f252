// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/leaktest"
	"github.com/wherryproject/wherry/internal/streams"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// serve is a server of sessions: talk has the upgraded connection.
func serve(t *testing.T, talk func(c *websocket.Conn)) *url.URL {
	t.Helper()
	up := websocket.Upgrader{Subprotocols: []string{protocol}}
	return serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		talk(c)
	})
}

func serveHTTP(t *testing.T, h http.HandlerFunc) *url.URL {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL + "/exec")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func tell(t *testing.T, c *websocket.Conn, channel byte, text string) {
	t.Helper()
	if err := c.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, text...)); err != nil {
		t.Error(err)
	}
}

const success = `{"metadata":{},"status":"Success"}`

func failed(code string) string {
	return fmt.Sprintf(`{"status":"Failure","message":"command terminated","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":%q}]}}`, code)
}

// The exit code is the command's; a connection that ended before it was told is a failed session, however it ended.
func TestHowSessionsEnd(t *testing.T) {
	closing := func(code int) func(*testing.T, *websocket.Conn) {
		return func(t *testing.T, c *websocket.Conn) {
			if err := c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(code, "")); err != nil {
				t.Error(err)
			}
		}
	}
	status := func(parts ...string) func(*testing.T, *websocket.Conn) {
		return func(t *testing.T, c *websocket.Conn) {
			for _, p := range parts {
				tell(t, c, streams.Status, p)
			}
		}
	}
	for name, c := range map[string]struct {
		end  func(*testing.T, *websocket.Conn)
		code int
		says string
	}{
		"well":             {status(success), 0, ""},
		"in two parts":     {status(success[:9], success[9:]), 0, ""},
		"after a greeting": {status("", success), 0, ""},
		"code":             {status(failed("42")), 42, ""},
		"odd code":         {status(failed("x")), ExitFailed, "which exit code"},
		"no command":       {status(`{"status":"Failure","message":"Internal error occurred: unable to start container process: exec: \"x\": executable file not found in $PATH"}`), 127, "not found"},
		"no right":         {status(`{"status":"Failure","message":"unable to start container process: exec: \"/etc\": permission denied"}`), 126, "permission"},
		"refused by node":  {status(`{"status":"Failure","message":"Internal error occurred: unable to upgrade connection: no such image"}`), 1, "no such image"},
		"failure":          {status(`{"status":"Failure","message":"the node stops"}`), ExitFailed, "the node stops"},
		"silent failure":   {status(`{"status":"Failure"}`), ExitFailed, "did not say why"},
		"closed":           {closing(websocket.CloseNormalClosure), ExitFailed, "without saying"},
		"going away":       {closing(websocket.CloseGoingAway), ExitFailed, "lost before"},
		"cut":              {func(_ *testing.T, c *websocket.Conn) { c.NetConn().Close() }, ExitFailed, "lost before"},
		"text": {func(t *testing.T, c *websocket.Conn) {
			if err := c.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
				t.Error(err)
			}
		}, ExitFailed, "invalid message for the protocol"},
		"empty message": {func(t *testing.T, c *websocket.Conn) {
			if err := c.WriteMessage(websocket.BinaryMessage, nil); err != nil {
				t.Error(err)
			}
		}, ExitFailed, "invalid message for the protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, func(conn *websocket.Conn) {
				tell(t, conn, streams.Stdout, "out")
				tell(t, conn, streams.Stderr, "err")
				tell(t, conn, 77, "of no channel")
				c.end(t, conn)
			})
			var out, errs bytes.Buffer
			code, err := Request{Dial: Server{}.Dial, URL: u, Stdout: &out, Stderr: &errs}.Run(t.Context())
			if code != c.code || (err == nil) != (c.says == "") ||
				err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("code %d, %v; want %d, %q", code, err, c.code, c.says)
			}
			if out.String() != "out" || errs.String() != "err" {
				t.Errorf("out %q, err %q", out.String(), errs.String())
			}
		})
	}
}

// What is typed arrives, and its end; the server's answer comes after both.
func TestStdin(t *testing.T) {
	u := serve(t, func(c *websocket.Conn) {
		var in bytes.Buffer
		for {
			_, m, err := c.ReadMessage()
			if err != nil {
				t.Error(err)
				return
			}
			if bytes.Equal(m, []byte{streams.CloseSignal, streams.Stdin}) {
				break
			}
			if m[0] != streams.Stdin {
				t.Errorf("channel %d", m[0])
			}
			in.Write(m[1:])
		}
		for rest := in.Bytes(); len(rest) > 0; {
			n := min(len(rest), 10_000)
			tell(t, c, streams.Stdout, string(rest[:n]))
			rest = rest[n:]
		}
		tell(t, c, streams.Status, success)
	})
	text := strings.Repeat("0123456789", 20_000)
	var out bytes.Buffer
	code, err := Request{Dial: Server{}.Dial, URL: u, Stdin: strings.NewReader(text), Stdout: &out}.Run(t.Context())
	if code != 0 || err != nil || out.String() != text {
		t.Errorf("code %d, %v, %d bytes back", code, err, out.Len())
	}
}

// A refusal is heard whole, however long, and is not asked again; what does not understand the question is asked
// otherwise.
func TestRefusals(t *testing.T) {
	long := strings.Repeat("the image is not to be had, ", 200)
	said, err := json.Marshal(map[string]any{"kind": "Status", "status": "Failure", "message": long,
		"reason": "AlreadyExists", "code": 409,
		"details": map[string]any{"causes": []any{map[string]any{"reason": "ExitCode", "message": "127"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		status int
		body   string
		code   int
		says   string
		other  bool // asked otherwise
	}{
		"status":      {http.StatusConflict, string(said), 127, long, false},
		"plain":       {http.StatusBadGateway, "no such image\n", ExitRefused, "no such image", false},
		"wordless":    {http.StatusForbidden, "", 9, "", true},
		"other JSON":  {http.StatusBadRequest, `{"status":"x"}`, ExitRefused, `{"status":"x"}`, false},
		"no protocol": {0, "", 9, "", true},
	} {
		for _, through := range []string{"directly", "through a proxy"} {
			if through == "through a proxy" && name == "status" {
				continue // the library keeps 1 KiB then
			}
			t.Run(name+" "+through, func(t *testing.T) {
				asked := 0
				u := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
					asked++
					if c.status == 0 {
						conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
						if err == nil {
							conn.Close()
						}
						return
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				})
				s := Server{}
				if through == "through a proxy" {
					s.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://" + tunnel(t)) }
				}
				otherwise := func(context.Context, Streams) (int, error) { return 9, nil }
				code, err := Request{Dial: s.Dial, URL: u, Otherwise: otherwise, Stdout: io.Discard}.Run(t.Context())
				if code != c.code || (err == nil) != c.other || err != nil && err.Error() != c.says || asked != 1 {
					t.Errorf("code %d, %v, asked %d times", code, err, asked)
				}
				if refusal, ok := errors.AsType[*Refusal](err); !c.other &&
					(!ok || !Reached(err) || (refusal.Raw != nil) != (name == "status")) {
					t.Errorf("%#v", err)
				}
			})
		}
	}
}

// tunnel is a proxy that hands one connection on.
func tunnel(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		defer to.Close()
		w.WriteHeader(http.StatusOK)
		conn, read, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		// The client answers the header before the connection is taken over: what it sent may be read already.
		go func() { _, _ = io.Copy(to, read.Reader) }()
		_, _ = io.Copy(conn, to)
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// A server that is not there, or whose certificate is not to be trusted, was not asked; one that went away when it was
// asked, was.
func TestReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}
	l.Close()
	connected := 0
	s := Server{Connected: func() { connected++ }}
	if _, err := s.Dial(t.Context(), gone); err == nil || Reached(err) || connected != 0 {
		t.Errorf("%v", err)
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	u, err := url.Parse(secure.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Dial(t.Context(), u)
	if _, untrusted := errors.AsType[x509.UnknownAuthorityError](err); !untrusted || Reached(err) {
		t.Errorf("%v", err)
	}
	cut := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if agent := r.UserAgent(); agent != UserAgent {
			t.Errorf("user agent %q", agent)
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	})
	if _, err := s.Dial(t.Context(), cut); err == nil || !Reached(err) || connected != 1 {
		t.Errorf("%v, connected %d times", err, connected)
	}
}

// A session that is cancelled ends at once, whatever the server does.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	u := serve(t, func(c *websocket.Conn) {
		cancel()
		_, _, _ = c.ReadMessage() // until the client is gone
	})
	code, err := Request{Dial: Server{}.Dial, URL: u, Stdout: io.Discard}.Run(ctx)
	if code != ExitInterrupted || !errors.Is(err, context.Canceled) {
		t.Errorf("code %d, %v", code, err)
	}
}

// DC-15 RS-13: what the server tells beside the streams reaches the user, and nothing in it is obeyed by a terminal.
func TestNotes(t *testing.T) {
	up := websocket.Upgrader{Subprotocols: []string{protocol}}
	u := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, http.Header{wire.HeaderNote: {"none is joined\x1b[2J"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		tell(t, c, streams.Status, success)
	})
	var notes []string
	code, err := Request{Dial: Server{Note: func(text string) { notes = append(notes, text) }}.Dial, URL: u,
		Stdout: io.Discard}.Run(t.Context())
	if code != 0 || err != nil || len(notes) != 1 || notes[0] != "none is joined [2J" {
		t.Errorf("code %d, %v, %q", code, err, notes)
	}
}

// Sizes reach the server in the protocol's words.
func TestSizes(t *testing.T) {
	u := serve(t, func(c *websocket.Conn) {
		_, m, err := c.ReadMessage()
		if err != nil || string(m) != "\x04{\"Width\":80,\"Height\":24}\n" {
			t.Errorf("%q, %v", m, err)
		}
		tell(t, c, streams.Status, success)
	})
	conn, err := Server{}.Dial(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	sizes := make(chan Size, 1)
	sizes <- Size{80, 24}
	if _, err := carry(t.Context(), conn, Streams{Sizes: sizes}); err != nil {
		t.Error(err)
	}
}

// A node's refusal, of which there are words only, is told from a failure of the command's.
func TestRefusedByNode(t *testing.T) {
	for text, want := range map[string]bool{
		"Internal error occurred: unable to upgrade connection: pod \"web\" does not exist on this node": true,
		"Internal error occurred: error executing command":                                               false,
		"": false,
	} {
		if _, err := Failure(text); err == nil || RefusedByNode(fmt.Errorf("exit: %w", err)) != want {
			t.Errorf("%q: %v, want %t", text, err, want)
		}
	}
}

// FuzzRefusal: whatever a server answers is a refusal, or nothing that understood, and never a panic.
func FuzzRefusal(f *testing.F) {
	f.Add(409,
		[]byte(`{"kind":"Status","status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"126"}]}}`))
	f.Add(400, []byte(`{"kind":"Status","status":"Failure","details":null}`))
	f.Add(502, []byte("bad gateway"))
	f.Add(403, []byte(" "))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		code, err := CodeOf(refusalOf(status, body))
		if err == nil || code < 1 || code > 255 {
			t.Errorf("%d, %v", code, err)
		}
	})
}
