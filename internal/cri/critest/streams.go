// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/utils/exec"

	"github.com/wherryproject/wherry/internal/cri/critest/script"
)

// StreamServer serves exec, attach and port-forward as container runtimes do: with k8s.io/cri-streaming, on a port of
// the loopback interface. It is a [Stream] for Config.Streams.
type StreamServer struct {
	streaming.Server
	http   *http.Server
	cancel context.CancelFunc
	served chan struct{}
}

// ServeStreams starts a server of streams that rt answers; nil means [Scripts].
func ServeStreams(rt streaming.Runtime) (*StreamServer, error) {
	if rt == nil {
		rt = Scripts{}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	config := streaming.DefaultConfig
	config.Addr = l.Addr().String()
	config.BaseURL = &url.URL{Scheme: "http", Host: config.Addr, Path: "/cri/"}
	server, err := streaming.NewServer(config, rt)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &StreamServer{Server: server, cancel: cancel, served: make(chan struct{}), http: &http.Server{
		Handler: server, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx },
	}}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(l)
	}()
	return s, nil
}

// Close ends the server and the commands that run. Other streams end with their clients' connections.
func (s *StreamServer) Close() error {
	s.cancel()
	err := s.http.Close()
	<-s.served
	return err
}

// Scripts answers streams by acting scripts: exec the command's, attach an echo, a port echoes what it is sent.
type Scripts struct{}

// Exec acts the script among cmd; with echo=true until its input ends.
func (Scripts) Exec(ctx context.Context, _ string, cmd []string, in io.Reader, out, errOut io.WriteCloser, _ bool,
	resize <-chan remotecommand.TerminalSize) error {
	s, err := script.Parse(cmd)
	if err != nil {
		return err
	}
	for _, line := range s.Stdout {
		_, _ = fmt.Fprintln(out, line)
	}
	for _, line := range s.Stderr {
		if errOut != nil {
			_, _ = fmt.Fprintln(errOut, line)
		}
	}
	if s.Show == "size" {
		size := <-resize
		_, _ = fmt.Fprintf(out, "%dx%d\n", size.Width, size.Height)
	}
	if s.Echo && in != nil {
		_, _ = io.Copy(out, in)
	}
	select {
	case <-time.After(s.RunFor):
	case <-ctx.Done():
	}
	if s.ExitCode != 0 {
		return exec.CodeExitError{Err: fmt.Errorf("exit code %d", s.ExitCode), Code: int(s.ExitCode)}
	}
	return nil
}

// Attach greets and echoes.
func (Scripts) Attach(_ context.Context, id string, in io.Reader, out, _ io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize) error {
	_, _ = fmt.Fprintln(out, "attached to", id)
	if in != nil {
		_, _ = io.Copy(out, in)
	}
	return nil
}

// PortForward says which port it is and echoes; port 1 refuses.
func (Scripts) PortForward(_ context.Context, _ string, port int32, stream io.ReadWriteCloser) error {
	if port == 1 {
		return fmt.Errorf("nobody listens on port %d", port)
	}
	_, _ = fmt.Fprintf(stream, "port %d\n", port)
	_, _ = io.Copy(stream, stream)
	return nil
}
