// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: words\r\n\r\n"

// served returns a client's connection on which it has asked for an upgrade and said "early " without waiting for the
// answer, and what the handler gets. The handler is over when the test is.
func served(t *testing.T, handler http.HandlerFunc) *net.TCPConn {
	t.Helper()
	var handlers sync.WaitGroup
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers.Add(1)
		defer handlers.Done()
		handler(w, r)
	}))
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); handlers.Wait(); srv.Close() })
	if _,
		err := io.WriteString(conn,
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: words\r\n\r\nearly "); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// head reads the answer to the upgrade.
func head(t *testing.T, from *bufio.Reader) {
	t.Helper()
	resp, err := http.ReadResponse(from, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
}

// IX-05: a client is known to be gone when its connection ends, in whichever way that is taken over, also one that had
// said something before; and not earlier.
func TestWatch(t *testing.T) {
	ways := map[string]func(w http.ResponseWriter) (net.Conn, io.Reader, error){
		"hijacked": func(w http.ResponseWriter) (net.Conn, io.Reader, error) {
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return nil, nil, err
			}
			return conn, rw, nil
		},
		"taken": func(w http.ResponseWriter) (net.Conn, io.Reader, error) {
			conn, err := Take(w)
			return conn, conn, err
		},
		"wrapped once more": func(w http.ResponseWriter) (net.Conn, io.Reader, error) {
			conn, err := Take(Watch(w, func() {}))
			return conn, conn, err
		},
	}
	for name, take := range ways {
		t.Run(name, func(t *testing.T) {
			gone, read := make(chan struct{}), make(chan string, 1)
			client := served(t, func(w http.ResponseWriter, _ *http.Request) {
				conn, from, err := take(Watch(w, sync.OnceFunc(func() { close(gone) })))
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, switching); err != nil {
					t.Error(err)
				}
				text, err := io.ReadAll(from)
				if err != nil {
					t.Error(err)
				}
				read <- string(text)
				<-gone // without being closed
			})
			head(t, bufio.NewReader(client))
			select {
			case <-gone:
				t.Error("already gone")
			default:
			}
			if _, err := io.WriteString(client, "and late"); err != nil {
				t.Fatal(err)
			}
			client.Close()
			<-gone
			if text := <-read; text != "early and late" {
				t.Errorf("read %q", text)
			}
		})
	}
}

// A connection that its own handler closes is at its end, too.
func TestWatchClosed(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	lost := 0
	c := &watched{Half: Half{ours}, lost: func() { lost++ }}
	if err := c.Close(); err != nil || lost != 1 {
		t.Errorf("%v, told %d times", err, lost)
	}
}

// IX-05: Kubernetes' streaming library looks for the response of net/http below those that wrap it.
func TestNobodyLooksThrough(t *testing.T) {
	if _, ok := Watch(httptest.NewRecorder(), func() {}).(interface{ Unwrap() http.ResponseWriter }); ok {
		t.Error("a connection can be taken over without our knowing")
	}
}

// A response whose connection cannot be had is an error, and nothing is wrapped.
func TestTakeRefused(t *testing.T) {
	w := Wrap(httptest.NewRecorder(), func(net.Conn) net.Conn { t.Error("wrapped nothing"); return nil })
	if conn, err := Take(w); conn != nil || !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("%v, %v", conn, err)
	}
}

// A client that has closed its half hears all, and then that it is the end, through any number of wrappers; and a
// connection that cannot be closed by halves says so.
func TestCloseWrite(t *testing.T) {
	client := served(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, err := Take(Watch(Wrap(w, func(c net.Conn) net.Conn { return Half{c} }), func() {}))
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, switching); err != nil {
			t.Error(err)
		}
		said, err := io.ReadAll(conn)
		if err != nil {
			t.Error(err)
		}
		if _, err := conn.Write(said); err != nil {
			t.Error(err)
		}
		if err := CloseWrite(conn); err != nil {
			t.Error(err)
		}
		if _, err := conn.Write(said); err == nil {
			t.Error("there is more to say")
		}
	})
	from := bufio.NewReader(client)
	head(t, from)
	if _, err := io.WriteString(client, "words"); err != nil {
		t.Fatal(err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(from); err != nil || string(text) != "early words" {
		t.Errorf("%q, %v", text, err)
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	if err := CloseWrite(Half{ours}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("half a pipe: %v", err)
	}
}
