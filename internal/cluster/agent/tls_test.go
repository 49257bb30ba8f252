// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/agent"
	"github.com/wherryproject/wherry/internal/cluster/agent/agenttest"
	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

const node = "node-1"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == talk.Word {
		os.Exit(stand())
	}
	if len(os.Args) > 1 && os.Args[1] == talk.KitWord {
		os.Exit(standKit(os.Args[2]))
	}
	os.Exit(m.Run())
}

// nobody has no sessions.
type nobody struct{ stopped []wire.Stop }

func (*nobody) List(wire.Pod) ([]wire.Running, error) { return nil, nil }

func (n *nobody) Stop(s wire.Stop) error {
	n.stopped = append(n.stopped, s)
	return nil
}

// serve starts an agent on loopback, whose sessions are a stand-in's.
// strange is told of strangers.
func serve(t *testing.T, pki *agenttest.PKI, strange func()) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	credentials := &agent.Credentials{Certificate: pki.Agent(node), Clients: pki.Pool(), Stranger: strange}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := func(ask talk.Ask, s agent.Streams) (*agent.Child, error) {
		return agent.Place{Here: true}.Start(program, ask, s)
	}
	server := agent.NewServer(start, &nobody{}, "").HTTP()
	server.ErrorLog = log.New(io.Discard, "", 0)
	go func() {
		_ = server.Serve(tls.NewListener(listener, agent.TLS(func() *agent.Credentials { return credentials })))
	}()
	t.Cleanup(func() { server.Close() })
	return listener.Addr().String()
}

// DA-07: an agent hears nobody but the API.
func TestOnlyTheAPI(t *testing.T) {
	pki, other := agenttest.NewPKI(t), agenttest.NewPKI(t)
	strangers := atomic.Int32{}
	address := serve(t, pki, func() { strangers.Add(1) })
	clientAuth := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for name, cert := range map[string]*tls.Certificate{
		"no certificate":    nil,
		"an agent's":        pki.Agent(node),
		"another authority": other.API(),
		"another name":      pki.Sign(agenttest.CertRequest{Name: "wherry-debug-api2", Usage: clientAuth}),
		"an agent's name":   pki.Sign(agenttest.CertRequest{Name: wire.AgentPrefix + node, Usage: clientAuth}),
		"expired": pki.Sign(agenttest.CertRequest{Name: wire.APIName, Usage: clientAuth,
			Until: time.Now().Add(-time.Minute)}),
		"no usage": pki.Sign(agenttest.CertRequest{Name: wire.APIName}),
		"any usage": pki.Sign(agenttest.CertRequest{Name: wire.APIName,
			Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}),
		"both usages": pki.Sign(agenttest.CertRequest{Name: wire.APIName,
			Usage: append(clientAuth, x509.ExtKeyUsageServerAuth)}),
		"serving": pki.Sign(agenttest.CertRequest{Name: wire.APIName,
			Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}),
	} {
		c := agenttest.NewClient(t, pki, address, node, cert)
		code, _, err := c.Do(http.MethodGet, wire.PathSessions, wire.Pod{Namespace: "a", Name: "b", UID: "c"}, nil)
		if err == nil {
			t.Errorf("DA-07 %s: answered %d", name, code)
		} else if !strings.Contains(err.Error(), "tls") && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if strangers.Load() != 1 {
		t.Errorf("%d clients might be the API of another authority", strangers.Load())
	}
	old := agenttest.NewClient(t, pki, address, node, pki.API())
	old.Config().MaxVersion = tls.VersionTLS12
	if code, _, err := old.Do(http.MethodGet, wire.PathSessions, wire.Pod{Namespace: "a", Name: "b", UID: "c"},
		nil); err == nil {
		t.Errorf("DA-07 TLS 1.2: answered %d", code)
	}
	api := agenttest.NewClient(t, pki, address, node, pki.API())
	var list wire.RunningList
	code, refused, err := api.Do(http.MethodGet, wire.PathSessions, wire.Pod{Namespace: "a", Name: "b", UID: "c"},
		&list)
	if err != nil || code != http.StatusOK || list.Items == nil {
		t.Errorf("the API: %d, %+v, %v", code, refused, err)
	}
}

// Whoever opens connections and says nothing takes neither the agent's memory nor the API's place.
func TestStrangers(t *testing.T) {
	pki := agenttest.NewPKI(t)
	address := serve(t, pki, nil)
	var first net.Conn
	for range 300 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if first == nil {
			first = conn
		}
	}
	var list wire.RunningList
	code, refused, err := agenttest.NewClient(t, pki, address, node, pki.API()).Do(http.MethodGet, wire.PathSessions,
		good().Pod, &list)
	if err != nil || code != http.StatusOK {
		t.Errorf("the API: %d, %+v, %v", code, refused, err)
	}
	if err := first.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first of them: %v", err)
	}
}

// good is a session that the agent does not refuse by itself.
func good() wire.Session {
	return wire.Session{Pod: wire.Pod{Namespace: "shop", Name: "web", UID: "u"}, As: wire.Shell, Container: "app",
		Command: []string{"sh"}, Stdin: true, Stdout: true, Stderr: true, Seconds: 60, By: "jane", ID: "0123456789ab"}
}

// DA-07: what cannot be is refused whole, before the connection becomes a stream; so is a pod that is another, or not
// on this node.
func TestRefusals(t *testing.T) {
	pki := agenttest.NewPKI(t)
	c := agenttest.NewClient(t, pki, serve(t, pki, nil), node, pki.API())
	for name, test := range map[string]struct {
		change func(*wire.Session)
		code   int
		reason string
	}{
		"no uid":         {func(s *wire.Session) { s.Pod.UID = "" }, 400, "BadRequest"},
		"no time limit":  {func(s *wire.Session) { s.Seconds = 0 }, 400, "BadRequest"},
		"an ID as path":  {func(s *wire.Session) { s.ID = "../../../etc" }, 400, "BadRequest"},
		"no kind":        {func(s *wire.Session) { s.As = "root" }, 400, "BadRequest"},
		"no container":   {func(s *wire.Session) { s.Container = "" }, 400, "BadRequest"},
		"no profile":     {func(s *wire.Session) { s.Profile = "god" }, 400, "BadRequest"},
		"no user":        {func(s *wire.Session) { s.User = "-1" }, 400, "BadRequest"},
		"little memory":  {func(s *wire.Session) { s.Memory = 1 }, 400, "BadRequest"},
		"negative CPUs":  {func(s *wire.Session) { s.CPUs = -1 }, 400, "BadRequest"},
		"a blind tty":    {func(s *wire.Session) { s.TTY, s.Stdin = true, false }, 400, "BadRequest"},
		"forged uid":     {func(s *wire.Session) { s.Pod.UID = "other" }, 409, wire.ReasonPodNotOnNode},
		"another's node": {func(s *wire.Session) { s.Pod.Name = "away" }, 404, wire.ReasonPodNotOnNode},
		"a dead child":   {func(s *wire.Session) { s.Pod.Name = "crash" }, 500, "InternalError"},
	} {
		w := good()
		test.change(&w)
		_, err := c.Session(w)
		refused, ok := err.(*agenttest.Refused)
		if !ok || refused.Code != test.code || refused.Status.Reason != test.reason ||
			refused.Status.Code != test.code ||
			refused.Status.Message == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	code, refused, err := c.Do(http.MethodGet, wire.PathSession, good(), nil)
	if err != nil || code != http.StatusBadRequest || !strings.Contains(refused.Message, "WebSocket") {
		t.Errorf("not a WebSocket: %d, %+v, %v", code, refused, err)
	}
	code, refused, err = c.Do(http.MethodGet, wire.PathEvidence, wire.Pod{Namespace: "shop", Name: "web", UID: "other"},
		nil)
	if err != nil || code != http.StatusConflict || refused.Reason != wire.ReasonPodNotOnNode {
		t.Errorf("evidence of a forged uid: %d, %+v, %v", code, refused, err)
	}
	var of wire.EvidenceOf
	code, refused, err = c.Do(http.MethodGet, wire.PathEvidence, good().Pod, &of)
	if err != nil || code != http.StatusOK || len(of.Containers) != 1 || of.Containers[0].Name != "<main>" {
		t.Errorf("evidence: %d, %+v, %v: %+v", code, refused, err, of)
	}
	code, refused, err = c.Do(http.MethodGet, "/v2/session", good(), nil)
	if err != nil || code != http.StatusNotFound {
		t.Errorf("a path that there is not: %d, %+v, %v", code, refused, err)
	}
}

// DA-05: input, output, errors, notes and the exit code come through.
func TestStreams(t *testing.T) {
	pki := agenttest.NewPKI(t)
	c := agenttest.NewClient(t, pki, serve(t, pki, nil), node, pki.API())
	s, err := c.Session(good())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(s.Notes, "|") != "a note" {
		t.Errorf("notes: %q", s.Notes)
	}
	s.Send(0, "hello ")
	s.Send(0, "there")
	s.CloseInput()
	out, errs, status := s.End(t.Context())
	if out != "hello there" || errs != "wherry: done\n" || status == nil || status.ExitCode() != 7 {
		t.Errorf("%q, %q, %+v", out, errs, status)
	}
	w := good()
	w.TTY, w.Stderr, w.Command = true, false, []string{"terminal"}
	if s, err = c.Session(w); err != nil {
		t.Fatal(err)
	}
	s.Send(4, `{"Width":91,"Height":17}`)
	s.Await(t.Context(), "91x17")
	s.Send(0, "\x03")
	if out, _, status := s.End(t.Context()); !strings.Contains(out, "got 3\r\n") || status == nil ||
		status.ExitCode() != 7 {
		t.Errorf("a terminal: %q, %+v", out, status)
	}
}

// DA-09: a client that is gone ends the session, also one whose terminal is full of what nobody has read.
func TestGone(t *testing.T) {
	pki := agenttest.NewPKI(t)
	c := agenttest.NewClient(t, pki, serve(t, pki, nil), node, pki.API())
	for name, command := range map[string]string{"pipes": "wait", "a terminal": "flood"} {
		ended, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "ended"), Net: "unix"})
		if err == nil {
			defer ended.Close()
			err = ended.SetDeadline(time.Now().Add(20 * time.Second))
		}
		if err != nil {
			t.Fatal(err)
		}
		w := good()
		w.Command, w.TTY = []string{command, ended.Addr().String()}, command == "flood"
		s, err := c.Session(w)
		if err != nil {
			t.Fatal(err)
		}
		if w.TTY {
			s.Await(t.Context(), "flood")
		}
		s.Drop()
		if conn, err := ended.Accept(); err != nil {
			t.Errorf("DA-09 %s: the session goes on without its client: %v", name, err)
		} else {
			conn.Close()
		}
	}
}
