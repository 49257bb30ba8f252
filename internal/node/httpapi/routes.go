// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/node/systemlogs"
	"github.com/wherryproject/wherry/internal/podspec"
)

// routes is every path there is.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	get := func(pattern string, h http.HandlerFunc) { mux.HandleFunc("GET "+pattern, h) }
	stream := func(pattern string, h http.HandlerFunc) {
		mux.HandleFunc("GET "+pattern, h) // WebSocket
		mux.HandleFunc("POST "+pattern, h)
	}
	stream("/exec/{namespace}/{pod}/{container}", s.exec)
	stream("/exec/{namespace}/{pod}/{uid}/{container}", s.exec)
	stream("/attach/{namespace}/{pod}/{container}", s.attach)
	stream("/attach/{namespace}/{pod}/{uid}/{container}", s.attach)
	stream(string(wire.RouteAttachRun), s.attachStarted)
	stream("/portForward/{namespace}/{pod}", s.portForward)
	stream("/portForward/{namespace}/{pod}/{uid}", s.portForward)
	stream(string(wire.RouteImageExec), s.imageExec)
	get("/containerLogs/{namespace}/{pod}/{container}", s.containerLogs)
	get("/runningpods", s.runningPods)
	get("/runningpods/{$}", s.runningPods)
	mux.HandleFunc("POST /checkpoint/{namespace}/{pod}/{container}", s.checkpoint)
	get(string(wire.RouteImageNames), s.imageNames)
	s.watchers(mux)
	if s.config.Timeline != nil {
		mux.Handle("GET "+string(wire.RouteTimeline), s.config.Timeline)
	}
	if s.config.Configz != nil {
		mux.Handle("GET /configz", s.config.Configz)
	}
	if s.logs != nil {
		mux.Handle("GET /logs/", http.StripPrefix("/logs/", s.systemLogs(http.FileServerFS(s.logs.FS()))))
	}
	return mux
}

// watchers is what programs read that watch over nodes.
func (s *Server) watchers(mux *http.ServeMux) {
	get := func(pattern string, h http.HandlerFunc) { mux.HandleFunc("GET "+pattern, h) }
	get("/pods", s.pods)
	get("/pods/{$}", s.pods)
	get("/stats/summary", s.statsSummary)
	get("/metrics/resource", s.metricsResource)
	get("/metrics/cadvisor", s.metricsCAdvisor)
	get("/healthz", s.healthz)
	get("/healthz/ping", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "ok") })
	get("/healthz/syncloop", s.healthz)
	if s.config.Metrics != nil {
		mux.Handle("GET /metrics", s.config.Metrics)
	}
	if s.config.Probes != nil {
		mux.Handle("GET /metrics/probes", s.config.Probes)
	}
}

// systemLogs is what is at /logs/: the machine's logs, and answers to questions about them, where that is turned on, as
// with a kubelet; else pods' logs alone, and questions are passed over. A kubelet shows all of /var/log in any case.
// Here somebody has to say so: what services write there is not written for everybody who may read nodes/log.
func (s *Server) systemLogs(pods http.Handler) http.Handler {
	if s.config.SystemLogs == nil {
		return pods
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "" && systemlogs.Asked(r.URL.Query()) {
			http.Error(w, "path not allowed in query mode", http.StatusNotAcceptable)
			return
		}
		s.config.SystemLogs.ServeHTTP(w, r)
	})
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	if s.config.Health != nil {
		if err := s.config.Health(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	_, _ = fmt.Fprint(w, "ok")
}

// httpError is an error with the status it is answered with.
type httpError struct {
	status int
	err    error
}

func (e *httpError) Error() string { return e.err.Error() }
func (e *httpError) Unwrap() error { return e.err }

func fail(status int, format string, args ...any) error {
	return &httpError{status: status, err: fmt.Errorf(format, args...)}
}

// podOf finds the pod a path names; with a UID in the path it must be that very one.
func (s *Server) podOf(r *http.Request) (*corev1.Pod, error) {
	pod, ok := s.config.Host.Pod(r.PathValue("namespace"), r.PathValue("pod"))
	if uid := r.PathValue("uid"); !ok || uid != "" && s.config.Host.UID(uid) != pod.UID {
		return nil, fail(http.StatusNotFound, "pod %q does not exist in namespace %q on this node", r.PathValue("pod"),
			r.PathValue("namespace"))
	}
	return pod, nil
}

// containerOf finds the pod and checks that the container a path names is in its spec, of whatever kind (EC-14).
func (s *Server) containerOf(r *http.Request) (*corev1.Pod, string, error) {
	pod, err := s.podOf(r)
	if err != nil {
		return nil, "", err
	}
	name := r.PathValue("container")
	if _, ok := podspec.FindContainer(&pod.Spec, name); !ok {
		return nil, "", fail(http.StatusNotFound, "container not found (%q): pod %q has no such container", name,
			pod.Name)
	}
	return pod, name, nil
}
