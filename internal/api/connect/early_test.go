// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestEarlyReader(t *testing.T) {
	for _, c := range []struct {
		agent, query string
		want         time.Duration
	}{
		{"wherry (linux/amd64)", "tty=true", 0},
		{"wherry/v1.37.2 (linux/amd64) kubernetes/abc", "", 0},
		{"kubectl/v1.34.0 (linux/amd64) kubernetes/abc", "tty=true", 0},
		{"kubectl/v1.101.0 (linux/amd64) kubernetes/abc", "tty=true", 0},
		{"kubectl/v1.33.9 (linux/amd64) kubernetes/abc", "tty=true", holdOnTerminal},
		{"kubectl/v1.29.0 (linux/amd64) kubernetes/abc", "tty=false", holdOtherwise},
		{"kubectl/v1.x", "tty=1", holdOnTerminal},
		{"k9s/v0.40 (linux/amd64) kubernetes/$Format", "tty=maybe", holdOtherwise},
		{"", "tty=true", holdOnTerminal},
	} {
		req := httptest.NewRequest(http.MethodGet, "/?"+c.query, nil)
		req.Header.Set("User-Agent", c.agent)
		if got := earlyReader(req); got != c.want {
			t.Errorf("%q, %q: %v, want %v", c.agent, c.query, got, c.want)
		}
	}
}

// taken is a response whose connection can be had.
type taken struct {
	http.ResponseWriter
	conn net.Conn
	rest string // what the client said with its request
}

// Hijack implements http.Hijacker.
func (w taken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	from := bufio.NewReader(io.MultiReader(strings.NewReader(w.rest), w.conn))
	if len(w.rest) > 0 {
		if _, err := from.Peek(len(w.rest)); err != nil {
			return nil, nil, err
		}
	}
	return w.conn, bufio.NewReadWriter(from, bufio.NewWriter(w.conn)), nil
}

// EC-16: what a node says at once is given to a client that may throw it away only when the client has said something, or has had time.
func TestEarlyOutputIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		hold    time.Duration
		rest    string
		speaks  bool
		begins  time.Duration // when the client hears the node
		nothing bool          // before it has spoken
	}{
		"takes everything":          {},
		"speaks":                    {hold: time.Second, speaks: true, nothing: true},
		"has spoken":                {hold: time.Second, rest: "size"},
		"does not speak":            {hold: time.Second, begins: time.Second, nothing: true},
		"spoken while it was asked": {hold: time.Second, rest: "size", speaks: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, front := net.Pipe()
				back, node := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, node) }()
				from := bufio.NewReader(io.MultiReader(strings.NewReader("prompt"), back))
				if _, err := from.Peek(len("prompt")); err != nil {
					t.Fatal(err)
				}
				n := &askedNode{conn: back, from: from, answer: &http.Response{Status: "101 Switching Protocols", StatusCode: http.StatusSwitchingProtocols}}
				joined := make(chan error, 1)
				go func() { joined <- n.join(taken{conn: front, rest: c.rest}, c.hold) }()

				heard := make(chan string, 10)
				go func() {
					defer close(heard)
					buf := make([]byte, 100)
					for {
						n, err := client.Read(buf)
						if err != nil {
							return
						}
						heard <- string(buf[:n])
					}
				}()
				begun := time.Now()
				if head := <-heard; !strings.HasPrefix(head, "HTTP/1.1 101 ") {
					t.Fatalf("%q", head)
				}
				synctest.Wait()
				if (len(heard) == 0) != c.nothing {
					t.Fatalf("%d messages before the client said anything", len(heard))
				}
				if c.speaks {
					if _, err := client.Write([]byte("size")); err != nil {
						t.Fatal(err)
					}
				}
				if text := <-heard; text != "prompt" || time.Since(begun) != c.begins {
					t.Errorf("%q after %v", text, time.Since(begun))
				}
				node.Close()
				client.Close()
				if err := <-joined; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
