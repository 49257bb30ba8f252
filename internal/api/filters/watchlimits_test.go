// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/api/schemes"
)

func limited(t *testing.T, l *watchLimits, who user.Info, verb string, next http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(limiting(t, l, who, verb, next))
	t.Cleanup(server.Close)
	return server
}

func limiting(t *testing.T, l *watchLimits, who user.Info, verb string, next http.HandlerFunc) http.Handler {
	t.Helper()
	s, err := schemes.New()
	if err != nil {
		t.Fatal(err)
	}
	l.codecs = s.Codecs
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := request.WithRequestInfo(req.Context(), &request.RequestInfo{IsResourceRequest: true, Verb: verb,
			APIVersion: "v1", Resource: "pods"})
		l.hold(next).ServeHTTP(w, req.WithContext(request.WithUser(ctx, who)))
	})
}

// A client of a watch that takes nothing is cut off.
// ATTACK B6.
func TestStalledWatch(t *testing.T) {
	ended := make(chan error, 1)
	server := limited(t, &watchLimits{patience: 50 * time.Millisecond, open: tally{}}, &user.DefaultInfo{Name: "jane"},
		"watch",
		func(w http.ResponseWriter, _ *http.Request) {
			for piece := make([]byte, 256<<10); ; {
				if _, err := w.Write(piece); err != nil {
					ended <- err
					return
				}
			}
		})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the watch ended with %v", err)
	}
}

// A watch without events is not ended for it, by HTTP/1 and HTTP/2: only a client that takes nothing of what there is
// is cut off. Old code: over HTTP/2 every watch ended a minute after its last event. (EC-20)
func TestQuietWatch(t *testing.T) {
	const patience = time.Second
	for _, major := range []int{1, 2} {
		t.Run(fmt.Sprint("HTTP/", major), func(t *testing.T) {
			more := make(chan struct{})
			server := httptest.NewUnstartedServer(nil)
			server.Config.Handler = limiting(t, &watchLimits{patience: patience, open: map[string]int{}},
				&user.DefaultInfo{Name: "jane"}, "watch",
				func(w http.ResponseWriter, _ *http.Request) {
					for range 2 {
						_, _ = io.WriteString(w, "event\n")
						w.(http.Flusher).Flush()
						<-more
					}
				})
			server.EnableHTTP2 = major == 2
			server.StartTLS()
			defer server.Close()
			defer close(more)
			resp, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.ProtoMajor != major {
				t.Fatalf("it is %s", resp.Proto)
			}
			lines := bufio.NewReader(resp.Body)
			if line, err := lines.ReadString('\n'); line != "event\n" {
				t.Fatalf("%q: %v", line, err)
			}
			// There is no event for nothing happening: this is the time in which it does not.
			time.Sleep(2 * patience)
			more <- struct{}{}
			if line, err := lines.ReadString('\n'); line != "event\n" {
				t.Errorf("after a time without events: %q: %v", line, err)
			}
		})
	}
}

// One user has no more watches than allowed; others, other requests, nodes and administrators have theirs.
func TestWatchesPerUser(t *testing.T) {
	l := &watchLimits{limit: 2, open: tally{}}
	hold, held := make(chan struct{}), make(chan struct{})
	next := func(w http.ResponseWriter, _ *http.Request) {
		held <- struct{}{}
		w.(http.Flusher).Flush()
		<-hold
	}
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	ask := func(server *httptest.Server) (int, string) {
		resp, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 1024)
		n := 0
		if resp.StatusCode != http.StatusOK {
			n, _ = resp.Body.Read(text)
			resp.Body.Close()
		}
		return resp.StatusCode, string(text[:n])
	}
	jane := limited(t, l, &user.DefaultInfo{Name: "jane"}, "watch", next)
	open := func(server *httptest.Server) {
		t.Helper()
		done := make(chan int, 1)
		go func() { code, _ := ask(server); done <- code }()
		select {
		case <-held:
		case code := <-done:
			t.Fatalf("refused with %d", code)
		}
	}
	open(jane)
	open(jane)
	if code, said := ask(jane); code != http.StatusTooManyRequests ||
		!strings.Contains(said, `user \"jane\" has 2 open watches`) {
		t.Errorf("%d %s", code, said)
	}
	open(limited(t, l, &user.DefaultInfo{Name: "joe"}, "watch", next))
	open(limited(t, l, &user.DefaultInfo{Name: "jane"}, "list", next))
	open(limited(t, l, &user.DefaultInfo{Name: "jane", Groups: []string{user.NodesGroup}}, "watch", next))
	open(limited(t, l, &user.DefaultInfo{Name: "jane", Groups: []string{user.SystemPrivilegedGroup}}, "watch", next))
	release()
	jane.Close() // returns when its requests are over
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.open["jane"]; n != 0 {
		t.Errorf("%d watches of jane are still counted", n)
	}
}
