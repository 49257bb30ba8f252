// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// EC-16: what a server says at once is given to a client that may throw it away only when the client has said
// something, or has had time.
func TestEarlyOutputIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		hold    time.Duration
		rest    string
		speaks  bool
		begins  time.Duration // when the client hears the server
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
				back, server := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, server) }()
				from := bufio.NewReader(io.MultiReader(strings.NewReader("prompt"), back))
				if _, err := from.Peek(len("prompt")); err != nil {
					t.Fatal(err)
				}
				a := &Answer{conn: back, from: from, Response: &http.Response{Status: "101 Switching Protocols",
					StatusCode: http.StatusSwitchingProtocols}}
				joined := make(chan error, 1)
				go func() { joined <- a.Join(taker{conn: front, rest: c.rest}, c.hold) }()

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
				server.Close()
				client.Close()
				if err := <-joined; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// joined is a client and a server whose upgrade was granted and who are joined.
func joined(t *testing.T) (client, server duplex, over <-chan error) {
	t.Helper()
	client, front := newDuplex()
	back, server := newDuplex()
	go func() {
		if _, err := http.ReadRequest(bufio.NewReader(server)); err != nil {
			t.Error(err)
		}
		if _, err := io.WriteString(server, switching); err != nil {
			t.Error(err)
		}
	}()
	a, err := Ask(t.Context(), back, httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil || !a.Granted() {
		t.Fatal(a, err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Join(taker{conn: front}, 0) }()
	if _, err := io.ReadFull(client, make([]byte, len(switching))); err != nil {
		t.Fatal(err)
	}
	return client, server, done
}

// EC-14: whoever goes first, what the other has said reaches those who listen, and then both connections are closed.
func TestJoinEnds(t *testing.T) {
	for name, c := range map[string]struct {
		does    func(t *testing.T, client, server duplex)
		lasts   time.Duration
		toldAll bool // the client hears what the server has said, and that it is the end
	}{
		"the server says something and closes": {func(t *testing.T, client, server duplex) {
			go func() { io.WriteString(server, "the end"); server.Close() }()
		}, 0, true},
		"the server closes its half": {func(t *testing.T, client, server duplex) {
			go func() { io.WriteString(server, "the end"); server.CloseWrite() }()
		}, 0, true},
		"the server takes no more, and says something then": {func(t *testing.T, client, server duplex) {
			server.Conn.Close()
			// the second is taken when the first was refused
			if _, err := io.WriteString(client, "unheard"); err != nil {
				t.Error(err)
			}
			if _, err := io.WriteString(client, "unheard too"); err != nil {
				t.Error(err)
			}
			go func() { io.WriteString(server, "the end"); server.CloseWrite() }()
		}, 0, true},
		"the client goes": {func(t *testing.T, client, server duplex) { client.Close() }, 0, false},
		"the client closes its half": {func(t *testing.T, client, server duplex) {
			client.CloseWrite()
			if n, err := io.Copy(io.Discard, server); n != 0 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
			client.Close()
		}, 0, false},
		"the client does not go": {func(t *testing.T, client, server duplex) {
			go func() { io.WriteString(server, "the end"); server.Close() }()
			if text, err := io.ReadAll(client); err != nil || string(text) != "the end" {
				t.Errorf("%q, %v", text, err)
			}
		}, Lingering, false},
		"the client takes nothing and goes": {func(t *testing.T, client, server duplex) {
			go io.WriteString(server, "unheard")
			synctest.Wait()
			client.Close()
		}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server, over := joined(t)
				begun := time.Now()
				c.does(t, client, server)
				if c.toldAll {
					if text, err := io.ReadAll(client); err != nil || string(text) != "the end" {
						t.Errorf("the client hears %q, %v", text, err)
					}
					client.Close()
				}
				if err := <-over; err != nil {
					t.Error(err)
				}
				if lasts := time.Since(begun); lasts != c.lasts {
					t.Errorf("it lasted %v", lasts)
				}
				if _, err := io.WriteString(server, "more"); err == nil {
					t.Error("the connection to the server is not closed")
				}
				if _, err := io.WriteString(client, "more"); err == nil {
					t.Error("the connection to the client is not closed")
				}
			})
		})
	}
}

// What one side does not take the other cannot send, and nothing is held for it; and it holds up nothing in the other
// direction.
func TestJoinStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, over := joined(t)
		const most = 1 << 20
		wrote := make(chan int, 1)
		go func() {
			n := 0
			for n < most {
				m, err := server.Write(make([]byte, 1000))
				if n += m; err != nil {
					break
				}
			}
			wrote <- n
		}()
		go io.WriteString(client, "stop")
		word := make([]byte, 4)
		if _, err := io.ReadFull(server, word); err != nil || string(word) != "stop" {
			t.Errorf("%q, %v", word, err)
		}
		client.Close()
		<-over
		if n := <-wrote; n > 64<<10 {
			t.Errorf("%d bytes were taken from the server", n)
		}
	})
}

// A client that leaves while the server thinks ends the request, and so does a server that is gone or answers in no
// HTTP.
func TestAskFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		back, server := newDuplex()
		go func() {
			http.ReadRequest(bufio.NewReader(server))
			cancel()
		}()
		if a, err := Ask(ctx, back, httptest.NewRequest(http.MethodGet, "/", nil)); a != nil ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", a, err)
		}
		if _, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the server reads %v", err)
		}
		for _, answer := range []string{"", "SSH-2.0-x\r\n\r\n", "HTTP/1.1 101 Switching"} {
			back, server := newDuplex()
			go func() {
				http.ReadRequest(bufio.NewReader(server))
				io.WriteString(server, answer)
				server.Close()
			}()
			if a, err := Ask(t.Context(), back, httptest.NewRequest(http.MethodGet, "/", nil)); a != nil || err == nil {
				t.Errorf("%q: %v, %v", answer, a, err)
			}
		}
	})
}

// EC-22: a refusal is an ordinary answer to the client, without what was about the connection to the server.
func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back, server := newDuplex()
		go func() {
			http.ReadRequest(bufio.NewReader(server))
			io.WriteString(server,
				"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nReason: why\r\n\r\n"+
					"b\r\nnot for you\r\n0\r\n\r\n")
		}()
		a, err := Ask(t.Context(), back, httptest.NewRequest(http.MethodGet, "/", nil))
		if err != nil || a.Granted() {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		a.Refuse(w)
		if w.Code != http.StatusForbidden || w.Body.String() != "not for you" || w.Header().Get("Reason") != "why" ||
			w.Header().Get("Connection") != "" {
			t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
		}
		if _, err := io.WriteString(server, "more"); err == nil {
			t.Error("the connection to the server is not closed")
		}
	})
}

// FuzzAnswer: whatever a server answers, in whatever pieces, a client gets a switch of protocols with all that follows
// it, and anything else as an ordinary answer; never a part of both.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x82\x01\x01",
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nX: y\r\n\r\nno",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 1010 x\r\n\r\n", "HTTP/1.1 101", "", "\r\n101", "garbage\r\n\r\n",
		"HTTP/1.1 500 \x1b[2J\r\nContent-Length: 99999999999999999999\r\n\r\n", "HTTP/1.1 000 x\r\n\r\n",
		"HTTP/1.1 099 x\r\n\r\n", "HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
	} {
		f.Add([]byte(text), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, piece uint8) {
		type heard struct {
			code                    int
			body, onTheirConnection string
		}
		answer := func(size int) (h heard) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			a, err := Ask(t.Context(), &script{says: bytes.NewReader(text), piece: size}, r)
			if err != nil {
				return h
			}
			client, w := &script{says: bytes.NewReader(nil), piece: 1}, httptest.NewRecorder()
			if !a.Granted() {
				a.Refuse(w)
			} else if err := a.Join(taker{ResponseWriter: w, conn: client}, 0); err != nil {
				t.Error(err)
			}
			return heard{w.Code, w.Body.String(), client.said.String()}
		}
		whole, parts := answer(len(text)+1), answer(1+int(piece))
		if whole != parts {
			t.Errorf("in pieces of %d it is %+v, at once %+v", 1+int(piece), parts, whole)
		}
		switch said := whole.onTheirConnection; {
		case said != "":
			_, follows, _ := strings.Cut(said, "\r\n\r\n")
			if !strings.HasPrefix(said, "HTTP/1.1 101") || !strings.HasSuffix(string(text), follows) ||
				whole.body != "" {
				t.Errorf("%q is handed on as %q", text, said)
			}
		case whole.code == http.StatusSwitchingProtocols || whole.code != 0 && whole.code < 200:
			t.Errorf("answered with %d, and nothing on the connection", whole.code)
		}
	})
}
