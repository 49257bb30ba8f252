// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/podspec"
)

// containerLogs writes a container's log, as it grows if asked to follow (PL-09).
func (s *Server) containerLogs(w http.ResponseWriter, r *http.Request) {
	opts, err := parseLogOptions(r.URL.Query())
	if err != nil {
		s.refuse(w, r, fail(http.StatusBadRequest, "%w", err))
		return
	}
	pod, name, err := s.containerOf(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	opts.Container = name
	path, err := s.config.Host.LogPath(pod.UID, name, opts.Previous)
	if err != nil {
		s.refuse(w, r, fail(http.StatusBadRequest, "%w", whyNoLog(pod, name, opts.Previous, err)))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := &sender{w: w}
	if opts.Follow {
		out.flush = http.NewResponseController(w).Flush
		_ = out.flush() // a quiet container's log begins with silence, not with a hanging request
	}
	stdout, stderr := io.Writer(out), io.Writer(out)
	if opts.Stream != nil {
		switch *opts.Stream {
		case corev1.LogStreamStdout:
			stderr = nil
		case corev1.LogStreamStderr:
			stdout = nil
		}
	}
	to, err := s.config.Logs(r.Context(), path, opts, s.runs(r, pod, name, opts), stdout, stderr)
	if err == nil && !opts.Follow && !opts.Previous && opts.Stream == nil {
		s.read.note(r.URL.Query().Get(wire.ParamReader), path, to, time.Now())
	}
	if err == nil || r.Context().Err() != nil {
		return
	}
	if !out.used && !opts.Follow {
		s.refuse(w, r, fail(http.StatusBadRequest, "reading the log of container %q in pod %q: %w", name, pod.Name,
			err))
		return
	}
	s.logger.Info("reading a container log was interrupted", "pod", pod.Namespace+"/"+pod.Name, "container", name,
		"err", err)
}

// runs says whether the container whose log is being followed still runs: what follows is that very one, not what is
// started after it.
func (s *Server) runs(r *http.Request, pod *corev1.Pod, name string, opts *corev1.PodLogOptions) func() bool {
	no := func() bool { return false }
	if opts.Previous || !opts.Follow {
		return no
	}
	id, err := s.config.Host.ContainerID(pod.UID, name)
	if err != nil {
		return no
	}
	return func() bool {
		st, err := s.config.CRI.Runtime.ContainerStatus(r.Context(),
			&runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			return !cri.NotFound(err) // a runtime that is away says nothing about its containers
		}
		return st.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING ||
			st.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_CREATED
	}
}

// whyNoLog words the absence of a log as kubectl users know it, from the container's published status.
func whyNoLog(pod *corev1.Pod, name string, previous bool, err error) error {
	if previous {
		return fmt.Errorf("previous terminated container %q in pod %q not found", name, pod.Name)
	}
	st := podspec.FindStatus(&pod.Status, name)
	if st == nil {
		return fmt.Errorf("container %q in pod %q is not available: %w", name, pod.Name, err)
	}
	if st.State.Waiting == nil {
		return fmt.Errorf("container %q in pod %q has no log: %w", name, pod.Name, err)
	}
	reason := st.State.Waiting.Reason
	switch reason {
	case "ErrImagePull":
		reason = "image can't be pulled"
	case "ImagePullBackOff":
		reason = "trying and failing to pull image"
	case "":
		return fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", name, pod.Name)
	}
	return fmt.Errorf("container %q in pod %q is waiting to start: %s", name, pod.Name, reason)
}

// sender knows whether anything was sent, and when following sends each write at once.
type sender struct {
	w     io.Writer
	flush func() error // nil: leave it to net/http, which sends what is there in few pieces
	used  bool
}

func (s *sender) Write(p []byte) (int, error) {
	s.used = true
	n, err := s.w.Write(p)
	if err != nil || s.flush == nil {
		return n, err
	}
	return n, s.flush()
}
