// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri/critest/script"
)

// Reasons and exit codes as containerd gives them.
const (
	reasonCompleted  = "Completed"
	reasonError      = "Error"
	reasonOOM        = "OOMKilled"
	reasonStartError = "StartError"
	reasonUnknown    = "Unknown"

	exitStartError = 128
	exitKilled     = 137
	exitUnknown    = 255
)

// world is the fake's state: everything but its faults. All its methods are called with the fake's lock held; only the
// timers it sets take the lock themselves.
type world struct {
	mu         *sync.Mutex
	logs       bool
	made       int // how many ids were given out
	images     map[string]*image
	registry   map[string]Remote
	sandboxes  map[string]*sandbox
	containers map[string]*container
	names      map[string]string // reserved name -> id
	events     events
}

func newWorld(mu *sync.Mutex, logs bool) *world {
	return &world{
		mu: mu, logs: logs,
		images: map[string]*image{}, registry: map[string]Remote{},
		sandboxes: map[string]*sandbox{}, containers: map[string]*container{}, names: map[string]string{},
	}
}

type image struct {
	Image
	made   int
	ref    string // normalised
	id     string // sha256:…
	digest string // name@sha256:…
}

func (i *image) order() int { return i.made }

type sandbox struct {
	made    int
	id      string
	name    string
	config  *runtimeapi.PodSandboxConfig
	handler string
	created time.Time
	ready   bool
	ip      string
}

func (s *sandbox) order() int { return s.made }

func (s *sandbox) options() *runtimeapi.NamespaceOption {
	return s.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
}

// container's state is computed from its times, as containerd's is.
type container struct {
	made      int
	id        string
	name      string
	sandboxID string
	config    *runtimeapi.ContainerConfig
	logPath   string
	image     *image
	script    script.Script
	resources *runtimeapi.ContainerResources

	created, started, finished time.Time
	starting, signalled        bool
	exitCode                   int32
	reason, message            string
	pidns                      string // who owns its PID namespace: a container's id, "pod:"+sandbox id, or "node"
	ended                      chan struct{}
	timer                      *time.Timer
	log                        *logFile
}

func (c *container) order() int { return c.made }

func (c *container) state() runtimeapi.ContainerState {
	switch {
	case !c.finished.IsZero():
		return runtimeapi.ContainerState_CONTAINER_EXITED
	case !c.started.IsZero():
		return runtimeapi.ContainerState_CONTAINER_RUNNING
	}
	return runtimeapi.ContainerState_CONTAINER_CREATED
}

func (c *container) running() bool {
	return c.state() == runtimeapi.ContainerState_CONTAINER_RUNNING
}

func (c *container) info(w *world) Info {
	i := Info{
		ID: c.id, SandboxID: c.sandboxID, Container: c.config.GetMetadata().GetName(),
		Attempt: c.config.GetMetadata().GetAttempt(), Image: c.config.GetImage().GetImage(),
		Command: c.config.GetCommand(), Args: c.config.GetArgs(), Labels: c.config.GetLabels(),
		Annotations: c.config.GetAnnotations(), Env: map[string]string{}, PIDNamespace: c.pidns,
	}
	for _, kv := range c.config.GetEnvs() {
		i.Env[kv.GetKey()] = string(kv.GetValue())
	}
	if s := w.sandboxes[c.sandboxID]; s != nil {
		m := s.config.GetMetadata()
		i.Namespace, i.Pod, i.UID = m.GetNamespace(), m.GetName(), m.GetUid()
	}
	return i
}

// newID is 64 hex digits, the same in every run of the same calls.
func (w *world) newID(kind string) (string, int) {
	w.made++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", kind, w.made))
	return hex.EncodeToString(sum[:]), w.made
}

// reserve takes a name for good, or until it is released.
func (w *world) reserve(name, id string) error {
	if holder, taken := w.names[name]; taken {
		// Not AlreadyExists: containerd's registrar errors are conflicts, which gRPC has no code for.
		return status.Errorf(codes.FailedPrecondition, "name %q is reserved for %q", name, holder)
	}
	w.names[name] = id
	return nil
}

func (w *world) release(name string) { delete(w.names, name) }

// sandbox finds one by its id or an unambiguous prefix of it, as containerd does.
func (w *world) sandbox(id string) (*sandbox, error) {
	return find(w.sandboxes, id, "sandbox")
}

func (w *world) container(id string) (*container, error) {
	return find(w.containers, id, "container")
}

func find[V any](m map[string]V, id, kind string) (V, error) {
	var found V
	if v, ok := m[id]; ok {
		return v, nil
	}
	n := 0
	for full, v := range m {
		if id != "" && strings.HasPrefix(full, id) {
			found = v
			n++
		}
	}
	if n == 1 {
		return found, nil
	}
	var none V
	return none, status.Errorf(codes.NotFound, "an error occurred when try to find %s %q: not found", kind, id)
}
