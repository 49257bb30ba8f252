// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// duplex is an end of a connection without buffers that can be closed by halves.
type duplex struct {
	net.Conn // reads
	to       net.Conn
}

func newDuplex() (a, b duplex) {
	ab, ba := make([]net.Conn, 2), make([]net.Conn, 2)
	ab[0], ab[1] = net.Pipe()
	ba[0], ba[1] = net.Pipe()
	return duplex{ba[1], ab[0]}, duplex{ab[1], ba[0]}
}

func (d duplex) Write(p []byte) (int, error) { return d.to.Write(p) }
func (d duplex) CloseWrite() error           { return d.to.Close() }
func (d duplex) Close() error                { return errors.Join(d.to.Close(), d.Conn.Close()) }
func (d duplex) SetDeadline(t time.Time) error {
	return errors.Join(d.to.SetDeadline(t), d.Conn.SetDeadline(t))
}
func (d duplex) SetWriteDeadline(t time.Time) error { return d.to.SetWriteDeadline(t) }

const idle = time.Hour

// accepted returns the client of a socket that is served. over is closed when serve has returned.
func accepted(t *testing.T, serve func(*Socket)) (client *websocket.Conn, over <-chan struct{}) {
	t.Helper()
	ours, theirs := newDuplex()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err := http.ReadRequest(bufio.NewReader(theirs))
		if err != nil {
			t.Error(err)
			return
		}
		w := httptest.NewRecorder()
		w.Header().Set("Wherry-Note", "a word")
		s, err := Accept(taker{ResponseWriter: w, conn: theirs}, r, idle)
		if err != nil {
			t.Error(err)
			return
		}
		serve(s)
	}()
	c, resp, err := websocket.NewClient(ours, &url.URL{Scheme: "ws", Host: "x"},
		http.Header{"Sec-Websocket-Protocol": {"v4.channel.k8s.io, " + V5}}, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	if c.Subprotocol() != V5 || resp.Header.Get("Wherry-Note") != "a word" {
		t.Errorf("protocol %q, %v", c.Subprotocol(), resp.Header)
	}
	return c, done
}

// hearing has a socket heard, and failed then, as its users do.
func hearing(s *Socket, to map[byte]io.WriteCloser) (heard <-chan error) {
	ended := make(chan error, 1)
	go func() {
		err := s.Hear(to)
		s.Fail()
		ended <- err
	}()
	return ended
}

// said reads what a client hears until the end.
func said(c *websocket.Conn) (messages []string, err error) {
	for {
		_, p, err := c.ReadMessage()
		if err != nil {
			return messages, err
		}
		messages = append(messages, string(p))
	}
}

// IX-05: the client hears the last word and that this was the normal end, and the connection is closed when it has
// closed it, or after a while.
func TestSocketEnd(t *testing.T) {
	for name, c := range map[string]struct {
		closes bool
		lasts  time.Duration
	}{"the client closes": {true, 0}, "the client does not": {false, Lingering}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, over := accepted(t, func(s *Socket) {
					heard := hearing(s, nil)
					s.Channel(Stdout).Write([]byte("out"))
					s.End(Status, []byte("{}"))
					<-heard
				})
				if !c.closes {
					client.SetCloseHandler(func(int, string) error { return nil })
				}
				begun := time.Now()
				messages, err := said(client)
				if len(messages) != 2 || messages[0] != "\x01out" || messages[1] != "\x03{}" ||
					!websocket.IsCloseError(err, websocket.CloseNormalClosure) {
					t.Errorf("%q, %v", messages, err)
				}
				if c.closes {
					client.Close()
				}
				<-over
				client.Close()
				if lasts := time.Since(begun); lasts != c.lasts {
					t.Errorf("it lasted %v", lasts)
				}
			})
		})
	}
}

// IX-05: a connection that ends in another way is not taken for a normal end, and all channels from the client are at
// their end.
func TestSocketFails(t *testing.T) {
	for name, c := range map[string]struct {
		does func(*websocket.Conn)
		code int // that the client hears
	}{
		"the client vanishes": {func(c *websocket.Conn) { c.NetConn().Close() }, 0},
		"the client closes its half": {func(c *websocket.Conn) { CloseWrite(c.NetConn()) },
			websocket.CloseInternalServerErr},
		"the client closes the socket": {func(c *websocket.Conn) {
			c.WriteControl(websocket.CloseMessage, nil, time.Time{})
		}, websocket.CloseInternalServerErr},
		"closes what is not a channel": {func(c *websocket.Conn) {
			c.WriteMessage(websocket.BinaryMessage, []byte{255, 9})
		}, websocket.CloseInternalServerErr},
		"closes two channels at once": {func(c *websocket.Conn) {
			c.WriteMessage(websocket.BinaryMessage, []byte{255, 0, 4})
		}, websocket.CloseInternalServerErr},
		"closes no channel": {func(c *websocket.Conn) {
			c.WriteMessage(websocket.BinaryMessage, []byte{255})
		}, websocket.CloseInternalServerErr},
		"frames that nobody understands": {func(c *websocket.Conn) { c.NetConn().Write([]byte("\xff\xff\xff\xff")) },
			websocket.CloseProtocolError},
		"nothing is said for long": {func(*websocket.Conn) { time.Sleep(idle) },
			websocket.CloseInternalServerErr},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := NewInbox()
				client, over := accepted(t, func(s *Socket) {
					heard := hearing(s, map[byte]io.WriteCloser{Stdin: in})
					if text, err := io.ReadAll(in); err != nil || string(text) != "in" {
						t.Errorf("the process read %q, %v", text, err)
					}
					if err := <-heard; err == nil {
						t.Error("this is no error")
					}
					s.End(Status, []byte("{}")) // the process may end all the same
				})
				if err := client.WriteMessage(websocket.BinaryMessage, []byte("\x00in")); err != nil {
					t.Fatal(err)
				}
				go c.does(client)
				messages, err := said(client)
				if closed, ok := errors.AsType[*websocket.CloseError](err); len(messages) != 0 || ok != (c.code != 0) ||
					ok && closed.Code != c.code {
					t.Errorf("the client hears %q, %v", messages, err)
				}
				<-over
				client.Close()
			})
		})
	}
}

// IX-05: a channel that the client closes is at its end, and the others are not.
func TestSocketCloseChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, sizes := NewInbox(), NewInbox()
		client, over := accepted(t, func(s *Socket) {
			heard := hearing(s, map[byte]io.WriteCloser{Stdin: in, Resize: sizes})
			text, _ := io.ReadAll(in)
			s.Channel(Stderr).Write(text)
			text, _ = io.ReadAll(sizes)
			s.End(Status, text)
			<-heard
		})
		go func() {
			for _, m := range []string{"\x00in", "\x02not for us", "\x63nor this", "", "\xff\x00", "\xff\x00",
				"\x00late", "\x04{}", "\xff\x01", "\xff\x04"} {
				if err := client.WriteMessage(websocket.BinaryMessage, []byte(m)); err != nil {
					t.Error(err)
				}
			}
		}()
		if messages, err := said(client); len(messages) != 2 || messages[0] != "\x02in" || messages[1] != "\x03{}" {
			t.Errorf("%q, %v", messages, err)
		}
		client.Close()
		<-over
	})
}

// EC-16: a client that does not read is heard all the same, and when it reads it hears everything, the answer to its
// last ping included.
func TestSocketStalledReader(t *testing.T) {
	const many = 100
	synctest.Test(t, func(t *testing.T) {
		in := NewInbox()
		client, over := accepted(t, func(s *Socket) {
			heard := hearing(s, map[byte]io.WriteCloser{Stdin: in})
			for range many {
				if _, err := s.Channel(Stdout).Write(make([]byte, 1000)); err != nil {
					t.Error(err)
				}
			}
			s.End(Status, nil)
			<-heard
		})
		for _, text := range []string{"one", "two", "three"} {
			if err := client.WriteControl(websocket.PingMessage, []byte(text), time.Time{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if err := client.WriteMessage(websocket.BinaryMessage, []byte("\x00stop")); err != nil {
			t.Fatal(err)
		}
		word := make([]byte, 4)
		if _, err := io.ReadFull(in, word); err != nil || string(word) != "stop" {
			t.Errorf("the process reads %q, %v", word, err)
		}
		var pongs []string
		client.SetPongHandler(func(text string) error { pongs = append(pongs, text); return nil })
		messages, err := said(client)
		if len(messages) != many+1 || !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			t.Errorf("%d messages, %v", len(messages), err)
		}
		if len(pongs) == 0 || pongs[len(pongs)-1] != "three" {
			t.Errorf("pings were answered with %q", pongs)
		}
		client.Close()
		<-over
	})
}

// A client that never reads again is given up when nothing could be sent for long.
func TestSocketStalledForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, over := accepted(t, func(s *Socket) {
			heard := hearing(s, nil)
			if _, err := s.Channel(Stdout).Write([]byte("out")); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%v", err)
			}
			<-heard
		})
		<-over
		client.Close()
	})
}

// EC-16: input comes whole and in order, in whatever frames and pieces its messages are sent, and output in messages of
// one frame.
func TestSocketFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, sizes := NewInbox(), NewInbox()
		text := make([]byte, 3*Largest+2)
		for i := range text {
			text[i] = byte(rand.IntN(256))
		}
		client, over := accepted(t, func(s *Socket) {
			heard := hearing(s, map[byte]io.WriteCloser{Stdin: in, Resize: sizes})
			all, err := io.ReadAll(in)
			if err != nil || !bytes.Equal(all, text) {
				t.Errorf("%d bytes, %v", len(all), err)
			}
			for _, n := range []int{0, 1, 125, 126, Largest, Largest + 1, 3*Largest + 2} {
				if m, err := s.Channel(Stdout).Write(text[:n]); m != n || err != nil {
					t.Errorf("%d of %d bytes, %v", m, n, err)
				}
			}
			s.End(Status, nil)
			<-heard
		})
		go func() {
			for rest := text; len(rest) > 0; { // the client's frames are of 64 bytes
				n := 1 + rand.IntN(min(len(rest), 1000))
				client.WriteMessage(websocket.BinaryMessage, append([]byte{Stdin}, rest[:n]...))
				client.WriteMessage(websocket.TextMessage, append([]byte{Resize}, "{}"...))
				rest = rest[n:]
			}
			client.WriteMessage(websocket.BinaryMessage, []byte{CloseSignal, Stdin})
		}()
		messages, err := said(client)
		want := []int{0, 1, 125, 126, Largest, Largest, 1, Largest, Largest, Largest, 2}
		for i, n := range want {
			if i >= len(messages) || len(messages[i]) != n+1 {
				t.Fatalf("message %d of %d is not of %d bytes, %v", i, len(messages), n, err)
			}
		}
		client.Close()
		<-over
	})
}

// A request that offers other protocols, or is none of a WebSocket, is refused, and nothing is taken over.
func TestAcceptRefuses(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	w := httptest.NewRecorder()
	if s, err := Accept(w, r, idle); s != nil || err == nil || w.Code != http.StatusBadRequest {
		t.Errorf("%v, %v, %d", s, err, w.Code)
	}
}

// script is a connection on which a client says something and is gone, piece after piece, and which takes all that is
// said to it.
type script struct {
	recording
	says  *bytes.Reader
	piece int
}

func (c *script) Read(p []byte) (int, error)      { return c.says.Read(p[:min(len(p), c.piece)]) }
func (c *script) SetReadDeadline(time.Time) error { return nil }
func (c *script) Close() error                    { return nil }

// FuzzSocket: whatever a client says, it is heard to the end, in the same way however it is cut into pieces.
func FuzzSocket(f *testing.F) {
	f.Add([]byte("\x82\x85\x00\x00\x00\x00\x00text\x82\x82\x00\x00\x00\x00\xff\x00"))
	f.Add([]byte("\x02\x82\x00\x00\x00\x00\x00t\x89\x80\x00\x00\x00\x00\x80\x82\x00\x00\x00\x00xt"))
	f.Add([]byte("\x82\xfe\x00\x7e\x00\x00\x00\x00\x04" + string(make([]byte, 125))))
	f.Add([]byte("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, says []byte) {
		var first []byte
		for _, piece := range []int{1, 3, 4096} {
			conn := &script{says: bytes.NewReader(says), piece: piece}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket",
				"Sec-Websocket-Version": "13", "Sec-Websocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
				"Sec-Websocket-Protocol": V5} {
				r.Header.Set(k, v)
			}
			s, err := Accept(taker{ResponseWriter: httptest.NewRecorder(), conn: conn}, r, idle)
			if err != nil {
				t.Fatal(err)
			}
			in := NewInbox()
			if s.Hear(map[byte]io.WriteCloser{Stdin: in}) == nil {
				t.Error("a client that is gone is still heard")
			}
			s.Fail()
			text, err := io.ReadAll(in)
			if err != nil || len(text) > len(says) {
				t.Errorf("%d bytes of %d, %v", len(text), len(says), err)
			}
			if piece == 1 {
				first = text
			} else if !bytes.Equal(text, first) {
				t.Errorf("in pieces of %d it is %q, one by one %q", piece, text, first)
			}
		}
	})
}
