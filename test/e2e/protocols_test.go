// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"github.com/wherryproject/wherry/test/images"
)

// socketProtocols are the WebSocket subprotocols that Kubernetes serves for commands; "" is none at all. v2 and v3 are SPDY's alone.
var socketProtocols = []string{"", "channel.k8s.io", "base64.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "v5.channel.k8s.io"}

// PL-22: exec, attach and port-forward are served over every protocol, with input, both outputs and how it ended, to a client that speaks
// it by hand.
func TestEveryStreamProtocol(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	echo := corev1.Container{Name: "echo", Image: images.BusyboxRef, Stdin: true, Command: []string{"sh", "-c", "echo begun; cat"}}
	s.Create(NewPod("web", echo, Tool("tcp", "127.0.0.1:9000")))
	s.WaitReady("web")
	for _, p := range socketProtocols {
		t.Run("exec by WebSocket "+p, func(t *testing.T) { s.With(t).execBySocket(p) })
		t.Run("attach by WebSocket "+p, func(t *testing.T) { s.With(t).attachBySocket(p) })
	}
	for _, p := range []string{"v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"} {
		t.Run("exec by SPDY "+p, func(t *testing.T) { s.With(t).execBySPDY(p) })
	}
	for _, p := range []string{"", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"} {
		t.Run("port-forward by WebSocket "+p, func(t *testing.T) { s.With(t).forwardBySocket(p) })
	}
	for how, dialer := range map[string]func(*url.URL) (httpstream.Dialer, error){
		"SPDY": func(u *url.URL) (httpstream.Dialer, error) {
			transport, upgrader, err := spdy.RoundTripperFor(s.Config)
			return spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u), err
		},
		"SPDY in a WebSocket": func(u *url.URL) (httpstream.Dialer, error) {
			return portforward.NewSPDYOverWebsocketDialer(u, s.Config)
		},
	} {
		t.Run("port-forward by "+how, func(t *testing.T) { s.With(t).forwardByStreams(dialer) })
	}
	t.Run("a protocol that nobody speaks is refused", func(t *testing.T) {
		c, resp, err := s.With(t).dial("v9.channel.k8s.io", "exec", url.Values{"command": {"true"}, "stdout": {"true"}})
		if err == nil {
			_ = c.Close()
		}
		if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
			t.Errorf("%v, %v", resp, err)
		}
	})
}

func (s *Space) streamURL(verb string, q url.Values) *url.URL {
	u := s.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.Namespace).Name("web").SubResource(verb).URL()
	u.RawQuery = q.Encode()
	return u
}

// socket is a WebSocket whose messages carry a channel's number first.
type socket struct {
	*websocket.Conn
	base64 bool
}

func (s *Space) dial(protocol, verb string, q url.Values) (*socket, *http.Response, error) {
	s.T.Helper()
	tlsConfig, err := rest.TLSConfigFor(s.Config)
	if err != nil {
		s.T.Fatal(err)
	}
	d := websocket.Dialer{TLSClientConfig: tlsConfig}
	if protocol != "" {
		d.Subprotocols = []string{protocol}
	}
	u := s.streamURL(verb, q)
	u.Scheme = "wss"
	c, resp, err := d.DialContext(s.Context(), u.String(), nil)
	if err != nil {
		return nil, resp, err
	}
	s.T.Cleanup(func() { _ = c.Close() })
	if got := c.Subprotocol(); got != protocol {
		s.T.Errorf("the server chose %q", got)
	}
	_ = c.SetReadDeadline(time.Now().Add(Timeout))
	return &socket{c, strings.Contains(protocol, "base64")}, resp, nil
}

func (s *Space) mustDial(protocol, verb string, q url.Values) *socket {
	s.T.Helper()
	c, resp, err := s.dial(protocol, verb, q)
	if err != nil {
		s.T.Fatalf("%v, %v", err, resp)
	}
	return c
}

func (c *socket) send(channel byte, data string) error {
	if c.base64 {
		return c.WriteMessage(websocket.TextMessage, append([]byte{'0' + channel}, base64.StdEncoding.EncodeToString([]byte(data))...))
	}
	return c.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, data...))
}

// read returns what the channels carry until enough says so, or the server closes.
func (c *socket) read(enough func(map[byte]string) bool) (map[byte]string, error) {
	got := map[byte]string{}
	for !enough(got) {
		_, data, err := c.ReadMessage()
		if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		channel := data[0]
		if data = data[1:]; c.base64 {
			channel -= '0'
			if data, err = base64.StdEncoding.DecodeString(string(data)); err != nil {
				return got, err
			}
		}
		got[channel] += string(data)
	}
	return got, nil
}

func toTheEnd(map[byte]string) bool { return false }

// askAndEnd is a command that reads a line, answers to both outputs and fails.
const askAndEnd = "read a; echo got $a; echo oops >&2; exit 3"

func execQuery() url.Values {
	return url.Values{"container": {"echo"}, "command": {"sh", "-c", askAndEnd}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}
}

func (s *Space) execBySocket(protocol string) {
	c := s.mustDial(protocol, "exec", execQuery())
	if err := c.send(0, "hello\n"); err != nil {
		s.T.Fatal(err)
	}
	got, err := c.read(toTheEnd)
	if err != nil && !websocket.IsUnexpectedCloseError(err) { // the old ones close without a word
		s.T.Errorf("%v", err)
	}
	want := "exit code 3"
	if strings.HasPrefix(protocol, "v") {
		want = `"reason":"ExitCode","message":"3"`
	}
	if got[1] != "got hello\n" || got[2] != "oops\n" || !strings.Contains(got[3], want) {
		s.T.Errorf("%q, want the end %s", got, want)
	}
}

func (s *Space) attachBySocket(protocol string) {
	c := s.mustDial(protocol, "attach", url.Values{"container": {"echo"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}})
	words := "by " + protocol + " and no other\n"
	if err := c.send(0, words); err != nil {
		s.T.Fatal(err)
	}
	got, err := c.read(func(got map[byte]string) bool { return strings.HasSuffix(got[1], words) })
	if err != nil || !strings.HasPrefix(got[1], "begun\n") {
		s.T.Errorf("%q, %v", got, err)
	}
}

func (s *Space) execBySPDY(protocol string) {
	transport, upgrader, err := spdy.RoundTripperFor(s.Config)
	if err != nil {
		s.T.Fatal(err)
	}
	e, err := remotecommand.NewSPDYExecutorForProtocols(transport, upgrader, http.MethodPost, s.streamURL("exec", execQuery()), protocol)
	if err != nil {
		s.T.Fatal(err)
	}
	var out, errOut bytes.Buffer
	err = e.StreamWithContext(s.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("hello\n"), Stdout: &out, Stderr: &errOut})
	early := protocol == "channel.k8s.io" && err == nil // its clients do not wait for how it ended
	if !early && (err == nil || !strings.Contains(err.Error(), "exit code 3")) || out.String() != "got hello\n" || errOut.String() != "oops\n" {
		s.T.Errorf("%q %q %v", out.String(), errOut.String(), err)
	}
}

const greeting = "welcome to web\n"

// forwardBySocket reads each channel's first two bytes, the port, and what is behind it.
func (s *Space) forwardBySocket(protocol string) {
	c := s.mustDial(protocol, "portforward", url.Values{"ports": {"9000"}})
	port := string(binary.LittleEndian.AppendUint16(nil, 9000))
	got, err := c.read(func(got map[byte]string) bool { return strings.HasSuffix(got[0], greeting) && len(got[1]) >= 2 })
	if err != nil || got[0] != port+greeting || got[1] != port {
		s.T.Errorf("%q, %v", got, err)
	}
}

func (s *Space) forwardByStreams(dialer func(*url.URL) (httpstream.Dialer, error)) {
	d, err := dialer(s.streamURL("portforward", nil))
	if err != nil {
		s.T.Fatal(err)
	}
	conn, protocol, err := d.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil || protocol != portforward.PortForwardProtocolV1Name {
		s.T.Fatalf("%q, %v", protocol, err)
	}
	defer conn.Close()
	for id, port := range []int{9000, 7} { // nobody listens on 7
		headers := http.Header{}
		headers.Set(corev1.PortHeader, fmt.Sprint(port))
		headers.Set(corev1.PortForwardRequestIDHeader, fmt.Sprint(id))
		headers.Set(corev1.StreamType, corev1.StreamTypeError)
		fault, err := conn.CreateStream(headers)
		if err != nil {
			s.T.Fatal(err)
		}
		headers.Set(corev1.StreamType, corev1.StreamTypeData)
		data, err := conn.CreateStream(headers)
		if err != nil {
			s.T.Fatal(err)
		}
		if port == 7 {
			if text, err := io.ReadAll(fault); err != nil || !strings.Contains(string(text), "7") {
				s.T.Errorf("port 7: %q, %v", text, err)
			}
			continue
		}
		text := make([]byte, len(greeting))
		if _, err := io.ReadFull(data, text); err != nil || string(text) != greeting {
			s.T.Errorf("port %d: %q, %v", port, text, err)
		}
	}
}
