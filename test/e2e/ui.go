// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
)

// Browser asks a page of Wherry's for what its script would ask for.
type Browser struct {
	T      testing.TB
	Base   string // http://127.0.0.1:PORT
	Cookie string // "": signed out
}

// Open runs `wherry ui`, which prints a link. The command ends with the test, at the latest.
func (s *Space) Open(args ...string) (link string, cmd *Cmd) {
	s.T.Helper()
	cmd = s.commandFor(time.Hour, append([]string{"ui", "--no-open"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.T.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() {
		cmd.cancel()
		_ = cmd.Wait() // fails if the test has waited for it
	})
	silent := time.AfterFunc(Timeout, cmd.cancel)
	defer silent.Stop()
	if link, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		s.T.Fatalf("wherry ui printed %q: %v", link, err)
	}
	return strings.TrimSpace(link), cmd
}

// Follow signs in by a link.
func Follow(t testing.TB, link string) *Browser {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{T: t, Base: u.Scheme + "://" + u.Host}
	resp := b.Do("GET", u.RequestURI(), "")
	b.take(resp, http.StatusSeeOther)
	return b
}

// take takes the cookie of an answer.
func (b *Browser) take(resp *http.Response, code int) {
	b.T.Helper()
	if c := resp.Cookies(); resp.StatusCode == code && len(c) == 1 {
		b.Cookie = c[0].Name + "=" + c[0].Value
		return
	}
	body, _ := io.ReadAll(resp.Body)
	b.T.Fatalf("sign in: %s %v %s", resp.Status, resp.Header, body)
}

// Do makes a request, as the page does.
func (b *Browser) Do(method, path, body string) *http.Response {
	b.T.Helper()
	req, err := http.NewRequestWithContext(b.T.Context(), method, b.Base+path, strings.NewReader(body))
	if err != nil {
		b.T.Fatal(err)
	}
	for name, value := range map[string]string{"X-Wherry-Page": "1", "Origin": b.Base, "Sec-Fetch-Site": "same-origin",
		"Content-Type": "application/json", "Cookie": b.Cookie} {
		req.Header.Set(name, value)
	}
	transport := &http.Transport{TLSClientConfig: anyCert(), ForceAttemptHTTP2: true}
	b.T.Cleanup(transport.CloseIdleConnections)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() { resp.Body.Close() })
	return resp
}

// anyCert takes any certificate: whose it is, other tests show.
func anyCert() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// Text is the body of an answer with the status that is wanted.
func (b *Browser) Text(code int, method, path, body string) string {
	b.T.Helper()
	resp := b.Do(method, path, body)
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != code {
		b.T.Errorf("%s %s: %s, want %d: %s (%v)", method, path, resp.Status, code, text, err)
	}
	return string(text)
}

// Exec runs a command in a pod's container over a WebSocket, and returns its output.
func (b *Browser) Exec(namespace, pod string, command ...string) string {
	b.T.Helper()
	conn := b.Shell(namespace, pod, command...)
	defer conn.Close()
	var out strings.Builder
	for {
		_, message, err := conn.ReadMessage()
		switch {
		case err != nil || len(message) == 0:
			b.T.Fatalf("%v: %v after %q", command, err, out.String())
		case message[0] == 1:
			out.Write(message[1:])
		case message[0] == 3:
			if !strings.Contains(string(message), `"Success"`) {
				b.T.Errorf("%v: %s", command, message[1:])
			}
			return out.String()
		}
	}
}

// Shell opens a WebSocket to a command in a pod's container.
func (b *Browser) Shell(namespace, pod string, command ...string) *websocket.Conn {
	b.T.Helper()
	q := url.Values{"command": command, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}
	return b.Socket("/ui/k8s/api/v1/namespaces/"+namespace+"/pods/"+pod+"/exec?"+q.Encode(), "v5.channel.k8s.io")
}

// Socket opens a WebSocket.
func (b *Browser) Socket(path string, protocols ...string) *websocket.Conn {
	b.T.Helper()
	d := websocket.Dialer{Subprotocols: protocols, TLSClientConfig: anyCert()}
	conn, resp, err := d.DialContext(b.T.Context(), "ws"+strings.TrimPrefix(b.Base, "http")+path,
		http.Header{"Cookie": {b.Cookie}, "Origin": {b.Base}})
	if err != nil {
		b.T.Fatalf("%s: %v (%+v)", path, err, resp)
	}
	resp.Body.Close()
	return conn
}

// Pods watches the pods of a namespace and returns the next one of which until holds.
func (b *Browser) Pods(namespace string) (next func(until func(*corev1.Pod) bool) *corev1.Pod) {
	b.T.Helper()
	resp := b.Do("GET", "/ui/k8s/api/v1/namespaces/"+namespace+"/pods?watch=true", "")
	if resp.StatusCode != http.StatusOK {
		b.T.Fatalf("watch: %s", resp.Status)
	}
	events := json.NewDecoder(resp.Body)
	return func(until func(*corev1.Pod) bool) *corev1.Pod {
		b.T.Helper()
		for {
			var event struct{ Object *corev1.Pod }
			if err := events.Decode(&event); err != nil {
				b.T.Fatalf("watch: %v", err)
			}
			if until(event.Object) {
				return event.Object
			}
		}
	}
}

// Interrupt ends `wherry ui`, and checks that it ends well.
func (c *Cmd) Interrupt(by syscall.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(by); err != nil {
		c.t.Fatal(err)
	}
	late := time.AfterFunc(Timeout, c.cancel)
	defer late.Stop()
	if err := c.Wait(); err != nil {
		c.t.Errorf("%s on %s, within %s: %v", c.line, by, Timeout, err)
	}
}
