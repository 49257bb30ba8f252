// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// checkpoint has the runtime write a container's memory and files into an archive (PL-35), and answers with its name. A
// runtime that does not know how, or has no CRIU, is 501: nothing was done.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	pod, name, err := s.containerOf(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	id, err := s.containerID(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	timeout := int64(0)
	if text := r.URL.Query().Get("timeout"); text != "" {
		if timeout, err = strconv.ParseInt(text, 10, 32); err != nil || timeout < 0 {
			s.refuse(w, r, fail(http.StatusBadRequest, "timeout=%q is not a number of seconds", text))
			return
		}
	}
	if s.config.Checkpoints == "" {
		s.refuse(w, r, fail(http.StatusNotImplemented, "this node keeps no checkpoints"))
		return
	}
	if err := os.MkdirAll(s.config.Checkpoints, 0o700); err != nil {
		s.refuse(w, r, err)
		return
	}
	at := filepath.Join(s.config.Checkpoints, fmt.Sprintf("checkpoint-%s_%s-%s-%s.tar", pod.Name, pod.Namespace, name,
		time.Now().Format(time.RFC3339)))
	_, err = s.config.CRI.Runtime.CheckpointContainer(r.Context(), &runtimeapi.CheckpointContainerRequest{
		ContainerId: id, Location: at, Timeout: timeout})
	if err != nil {
		s.refuse(w, r, fail(http.StatusNotImplemented, "checkpointing of %s/%s/%s failed: the container runtime says: "+
			"%s; checkpoints need CRIU on the node, and a runtime that is set up to use it", pod.Namespace, pod.Name,
			name, cri.Message(err)))
		return
	}
	s.writeJSON(w, r, struct {
		Items []string `json:"items"`
	}{[]string{at}})
}
