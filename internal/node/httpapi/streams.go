// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/proxy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/imageexec"
	"github.com/wherryproject/wherry/internal/streams"
)

// exec runs the query's command in a container and hands the streams over (EC-14).
func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	opts, err := parseStreams(r.URL.Query())
	if err != nil {
		s.refuse(w, r, fail(http.StatusBadRequest, "%w", err))
		return
	}
	cmd := r.URL.Query()["command"]
	if len(cmd) == 0 {
		s.refuse(w, r, fail(http.StatusBadRequest, "you must specify a command to run in the container"))
		return
	}
	id, err := s.containerID(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	pod, err := s.podOf(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if s.config.Exec != nil {
		if err := s.mayExec(r, id); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	ended, err := s.programs.begin(pod.UID, pod.Name)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if s.config.Exec != nil {
		s.serveExec(w, r, id, cmd, opts, ended)
		return
	}
	defer ended()
	resp, err := s.config.CRI.Runtime.Exec(r.Context(), &runtimeapi.ExecRequest{
		ContainerId: id, Cmd: cmd, Tty: opts.TTY, Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr,
	})
	if err != nil {
		s.refuse(w, r, inContainer(r, err))
		return
	}
	s.remoteCommand(w, r, resp.GetUrl(), opts)
}

// attach joins the streams of a container's own process (EC-14, EC-15). Whether it has a terminal is the container's
// matter, but the client must ask for what it has.
func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	opts, err := parseStreams(r.URL.Query())
	if err != nil {
		s.refuse(w, r, fail(http.StatusBadRequest, "%w", err))
		return
	}
	id, err := s.containerID(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.attachTo(w, r, id, opts)
}

// attachStarted is attach to one run of a debug container, as soon as that has started: who made it need not wait until
// its status is stored (DC-03). The run is in the path, for no other run is meant, and so that a node without this
// answers 404 and attaches to nothing.
func (s *Server) attachStarted(w http.ResponseWriter, r *http.Request) {
	opts, err := parseStreams(r.URL.Query())
	if err != nil {
		s.refuse(w, r, fail(http.StatusBadRequest, "%w", err))
		return
	}
	run, err := strconv.ParseUint(r.PathValue("run"), 10, 31)
	if err != nil {
		s.refuse(w, r, fail(http.StatusBadRequest, "%q is not a run number", r.PathValue("run")))
		return
	}
	pod, err := s.podOf(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	id, err := s.config.Host.Started(r.Context(), pod.UID, r.PathValue("container"), uint32(run))
	switch {
	case r.Context().Err() != nil:
		s.refuse(w, r, fail(http.StatusServiceUnavailable, "%w", errStopped)) // or the client is gone
	case err != nil:
		s.refuse(w, r, fail(http.StatusConflict, "%w", err))
	default:
		s.attachTo(w, r, id, opts)
	}
}

// attachTo joins the streams of a container.
func (s *Server) attachTo(w http.ResponseWriter, r *http.Request, id string, opts streamOptions) {
	if s.config.Attach != nil {
		kept, err := s.config.Attach.KeepsOutput(r.Context(), id)
		if err != nil {
			s.refuse(w, r, inContainer(r, err))
			return
		}
		if kept {
			s.serveKept(w, r, id, opts)
			return
		}
	}
	path := s.replayOf(r)
	if s.config.Streams != nil {
		s.attachRunning(w, r, id, path, opts)
		return
	}
	resp, err := s.config.CRI.Runtime.Attach(r.Context(), &runtimeapi.AttachRequest{
		ContainerId: id, Tty: opts.TTY, Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr,
	})
	if err != nil && s.leftLog(r, id, path) {
		s.serveReplayed(w, r, id, path, nil, opts)
		return
	}
	if err != nil {
		s.refuse(w, r, inContainer(r, err))
		return
	}
	location, err := runtimeURL(resp.GetUrl())
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.serveReplayed(w, r, id, path, streamed(location, opts.TTY), opts)
}

// portForward connects to ports in the pod's network (EC-14).
func (s *Server) portForward(w http.ResponseWriter, r *http.Request) {
	var ports []int32
	tunnel := wsstream.IsWebSocketRequestWithTunnelingProtocol(r)
	if wsstream.IsWebSocketRequest(r) && !tunnel {
		var err error
		if ports, err = parsePorts(r.URL.Query()); err == nil && len(ports) == 0 {
			err = errors.New(`query parameter "port" is required`)
		}
		if err != nil {
			s.refuse(w, r, fail(http.StatusBadRequest, "%w", err))
			return
		}
	}
	pod, err := s.podOf(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	id, err := s.config.Host.SandboxID(pod.UID)
	if err != nil {
		s.refuse(w, r, fail(http.StatusNotFound, "%w", err)) // the agent says which pod, and why not
		return
	}
	if s.config.Forward != nil {
		s.forward(w, r, pod, id, tunnel)
		return
	}
	resp, err := s.config.CRI.Runtime.PortForward(r.Context(),
		&runtimeapi.PortForwardRequest{PodSandboxId: id, Port: ports})
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	location, err := runtimeURL(resp.GetUrl())
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if tunnel {
		proxy.NewTunnelingHandler(s.through(location)).ServeHTTP(w, r)
		return
	}
	s.through(location).ServeHTTP(w, r)
}

// containerID is the running container a path names.
func (s *Server) containerID(r *http.Request) (string, error) {
	pod, name, err := s.containerOf(r)
	if err != nil {
		return "", err
	}
	id, err := s.config.Host.ContainerID(pod.UID, name)
	if err != nil {
		return "", fail(http.StatusNotFound, "%w", err)
	}
	return id, nil
}

// inContainer puts in front of the runtime's words which container they are about.
func inContainer(r *http.Request, err error) error {
	return fmt.Errorf("container %q in pod %q: %w", r.PathValue("container"), r.PathValue("pod"), err)
}

// remoteCommand connects the client with the runtime's stream: SPDY and the old WebSocket protocols as they are, the
// WebSocket protocol that can close stdin translated to SPDY.
func (s *Server) remoteCommand(w http.ResponseWriter, r *http.Request, raw string, o streamOptions) {
	location, err := runtimeURL(raw)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if !wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		s.through(location).ServeHTTP(w, r)
		return
	}
	// The translator waits for the command's end even when its client is gone; end the wait with the connection.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	translator := proxy.NewStreamTranslatorHandler(location, nil, 0,
		proxy.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY})
	translator.ServeHTTP(streams.Watch(w, cancel), r.WithContext(ctx))
}

// through proxies the upgraded connection to the runtime's streaming server.
func (s *Server) through(location *url.URL) http.Handler {
	h := utilproxy.NewUpgradeAwareHandler(location, nil, false, true, responder{s})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Header.Del("Authorization") // ours to check, not the runtime's to know
		h.ServeHTTP(w, r)
	})
}

// runtimeURL reads the URL that the runtime gave; it is what we connect to, so it has to be one of a host. cri-dockerd
// leaves out the scheme of what it serves without TLS.
func runtimeURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err == nil && u.Scheme == "" {
		u.Scheme = "http"
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the container runtime gave %q as the address of its stream", raw)
	}
	return u, nil
}

// refuse answers with err; errors of the runtime get the status that the kubelet gives them.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	code := statusOf(err)
	if code >= http.StatusInternalServerError {
		s.logger.Info("kubelet API request failed", "path", r.URL.Path, "err", err)
	}
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "60")
	}
	if wsstream.IsWebSocketRequest(r) {
		refuseWebSocket(w, code, cri.Message(err))
		return
	}
	http.Error(w, cri.Message(err), code)
}

// refuseWebSocket answers with a Status: what is none, client-go reads as one all the same if it looks like YAML, and
// has no message then.
func refuseWebSocket(w http.ResponseWriter, code int, message string) {
	text, err := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusFailure, Code: int32(code), Message: message})
	if err != nil {
		http.Error(w, message, code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

func statusOf(err error) int {
	if he, ok := errors.AsType[*httpError](err); ok {
		return he.status
	}
	if ie, ok := errors.AsType[*imageexec.Error](err); ok {
		return ie.Status
	}
	var api apierrors.APIStatus // the proxy's own errors
	if errors.As(err, &api) {
		return int(api.Status().Code)
	}
	switch {
	case cri.NotFound(err):
		return http.StatusNotFound
	case cri.Unimplemented(err):
		return http.StatusNotImplemented
	case cri.Unavailable(err):
		return http.StatusServiceUnavailable
	case status.Code(err) == codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case status.Code(err) == codes.InvalidArgument:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// responder answers for the proxy when there is no stream to proxy.
type responder struct{ s *Server }

func (p responder) Error(w http.ResponseWriter, r *http.Request, err error) { p.s.refuse(w, r, err) }
