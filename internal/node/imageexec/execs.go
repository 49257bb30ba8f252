// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/debug/evidence"
	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/mountfd"
	"github.com/wherryproject/wherry/internal/node/image"
	"github.com/wherryproject/wherry/internal/node/ops"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Runtime is what image exec needs of a container runtime besides the CRI.
type Runtime interface {
	// Files returns the files that a container sees.
	Files(ctx context.Context, containerID string) (Files, error)
	// Attach joins the streams of a container's process, from the first byte of its output on. It returns nil when the
	// process has ended and all its output is written, or ctx's error.
	Attach(ctx context.Context, containerID string, s Streams) error
}

// Streams are a client's. Those that it did not ask for are nil.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	TTY            bool
	Resize         <-chan remotecommand.TerminalSize
}

// Config of Execs. All fields are required.
type Config struct {
	Runtime Runtime
	Ops     *ops.Runner // what it is made of is shared: images, cgroups, logs, the node's facts
	Folder  string      // of the sessions' files
	// Pod is a pod as the node has it now, or nil; Changed is closed when that may have become another.
	Pod     func(types.UID) *corev1.Pod
	Changed func() <-chan struct{}
	// Released is called when the last session that showed containers of a pod has ended.
	Released func(types.UID)
	Limits   Limits // how many there may be
	Logger   *slog.Logger
}

// Execs runs image execs. Safe for concurrent use.
type Execs struct {
	Config
	mu   sync.Mutex
	live map[string]owner // sessions, by id
	logs int64            // bytes of logs that sessions show
	held map[string]int   // how many sessions show a container, by its id
	// writers are the sessions that have the layers of ended containers mounted to write to, by the container's id.
	writers map[string]string

	leftover []*Session    // that could not be removed at their ends
	left     chan struct{} // has something when leftover has
}

// New makes Execs. Nothing is touched before Sweep.
func New(c Config) *Execs {
	return &Execs{Config: c, live: map[string]owner{}, held: map[string]int{}, writers: map[string]string{},
		left: make(chan struct{}, 1)}
}

// Holds reports whether a session shows the files of a container, which are not to go from under it.
func (e *Execs) Holds(container string) bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held[container] > 0
}

// Owns reports whether a pod's UID is that of a session, which goes without a record of its own.
func (e *Execs) Owns(uid types.UID) bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ours := e.live[string(uid)]
	return ours
}

// cleanTime bounds how long taking a session away may take, and calls of the runtime that are waited for though the
// client is gone: what they make would be seen by nobody.
const cleanTime = 30 * time.Second

// Session is one image exec.
type Session struct {
	id    string
	e     *Execs
	req   Request
	tree  *tree
	notes []string

	container string // its id, when it is known
	inSandbox string // the id of the sandbox that it is in
	created   bool   // the runtime was asked for a container
	sandbox   bool   // and for a temporary sandbox
	below     string // the cgroup that the container's is in; "" where there are none
	cgroup    bool   // the stand-in has a cgroup
	closing   sync.Once

	changing sync.Mutex // held while the container is started, and while it is removed
	closed   bool       // guarded by changing

	cut      atomic.Pointer[string] // why the session ends before its command
	limit    time.Duration          // how long the command may run; 0: as long as it likes
	visiting bool                   // the pod has ended: the command has a sandbox of its own
	shares   int                    // how many containers were there from the start
	logged   int64                  // bytes of logs that are shown

	following // of what starts later
}

// Prepare does all of an image exec that can fail before there are streams. Errors that are the client's, or that it
// can do something about, are *Error. The session must be closed.
func (e *Execs) Prepare(ctx context.Context, pod *corev1.Pod, r Request) (*Session, error) {
	if !mountfd.KernelCan() {
		return nil,
			refuse(http.StatusNotImplemented,
				"image exec is not implemented on this node: its kernel cannot set the attributes of mounts; it needs Linux 5.12 or later")
	}
	// nothing is asked of a registry (DC-13)
	if err := e.Ops.Images.Allowed(ctx, e.Ops.Node.DebugImages, r.Image); err != nil {
		return nil, refuse(http.StatusForbidden, "image exec: %v", err)
	}
	s := &Session{id: uuid.NewString(), e: e, req: r}
	if err := e.begin(s.id, pod); err != nil {
		return nil, err
	}
	if err := e.pull(ctx, pod, r); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.prepare(ctx, pod); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// pull makes the image present on the node (IX-02).
func (e *Execs) pull(ctx context.Context, pod *corev1.Pod, r Request) error {
	_, err := e.Ops.Images.Ensure(ctx, pod, &corev1.Container{Name: "exec", Image: r.Image, ImagePullPolicy: r.Policy})
	if err == nil || ctx.Err() != nil {
		return err
	}
	status := http.StatusBadGateway // the registry's doing, or the network's
	if ie := (*image.Error)(nil); errors.As(err, &ie) {
		switch ie.Reason {
		case image.InvalidImageName, image.ErrImageNeverPull:
			status = http.StatusBadRequest
		}
	}
	return refuse(status, "image exec: %v", err)
}

func (s *Session) prepare(ctx context.Context, pod *corev1.Pod) error {
	seen, err := s.e.Ops.Observe(ctx, pod)
	if err != nil {
		return err
	}
	p, err := placeOf(pod, seen, s.req.Container)
	if err != nil {
		return err
	}
	s.notes = append(s.notes, p.Notes...)
	s.visiting = p.Sandbox == nil
	if s.tree, err = makeTree(filepath.Join(s.e.Folder, s.id)); err != nil {
		return err
	}
	config, err := s.config(ctx, pod, seen, p)
	if err != nil {
		return err
	}
	if note := userNote(s.req, pod, config); note != "" {
		s.notes = append(s.notes, note)
	}
	show, left := choose(pod, seen)
	s.notes = append(s.notes, left...)
	s.shares = len(show)
	s.user, s.uid = int(config.GetLinux().GetSecurityContext().GetRunAsUser().GetValue()), pod.UID
	for _, c := range show {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.show(ctx, pod, c, c.Name); err != nil {
			return err
		}
	}
	if err := s.writeNotes(s.user); err != nil {
		return err
	}
	return s.create(ctx, pod, p, config)
}

// config decides the container's config.
func (s *Session) config(ctx context.Context, pod *corev1.Pod, seen plan.Seen,
	p place) (*runtimeapi.ContainerConfig, error) {
	as := pod
	if p.Sandbox == nil {
		as = standIn(pod, s.id)
	}
	got,
		err := s.e.Ops.CRI.Images.ImageStatus(ctx,
		&runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: imagename.Asked(s.req.Image)}})
	if err == nil && got.GetImage() == nil {
		err = errors.New("it has just been removed from the node; try again")
	}
	if err != nil {
		return nil, fmt.Errorf("image %s: %s", s.req.Image, cri.Message(err))
	}
	var user *ops.User
	if ops.NeedsUser(as, container(s.req, s.id, as), podspec.Ephemeral, got.GetImage()) {
		user = s.e.Ops.DebugUser(ctx, pod, seen, s.req.likeWhom(), s.req.Image)
	}
	c, err := containerConfig(s.req, s.id, as, p, s.e.Ops.Node, got.GetImage(), user, s.tree.files(), s.tree.hosts())
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "image %s cannot run in pod %q: %v", s.req.Image, pod.Name, err)
	}
	return c, nil
}

// show makes a container's files and what is known of it visible as /c/<as>. What cannot be had is noted (IX-10); the
// error is of files that cannot be written to, as was asked for, because somebody else does.
func (s *Session) show(ctx context.Context, pod *corev1.Pod, c shown, as string) error {
	s.hold(c.ID, as)
	files, err := s.e.Runtime.Files(ctx, c.ID)
	if err == nil {
		var notes []string
		notes, err = s.tree.show(ctx, as, s.alone(c.ID, files), s.req.Writable)
		s.notes = append(s.notes, notes...)
	}
	if errors.Is(err, errWritten) {
		return refuse(http.StatusConflict, "container %s: %v; wait until that has ended, or read only", c.Name,
			errWritten)
	}
	if err != nil {
		s.note("container %s is left out: %v", c.Name, err)
	}
	write := func(name string, text []byte, err error) {
		if err == nil {
			err = s.tree.write(filepath.Join(s.tree.known(as), name), text, s.user)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.note("container %s: its %s is not shown: %v", c.Name, name, err)
		}
	}
	if len(files.Env) > 0 {
		write("env", evidence.EnvText(files.Env), nil)
	}
	text, err := statusJSON(c)
	write("status.json", text, err)
	text, err = s.log(s.e.Ops.Logs.File(pod, c.Name, c.Attempt))
	write("log", text, err)
	return nil
}

// log returns as much of the end of a log as the session may show.
func (s *Session) log(file string) ([]byte, error) {
	want := logShare(s.shares, s.logged)
	most := s.e.takeLogs(want)
	text, err := evidence.CRILogEnd(file, most)
	s.e.giveLogs(most - int64(len(text)))
	s.logged += int64(len(text))
	if err == nil && most == 0 && want > 0 {
		return nil, errors.New("image execs on this node show as much of logs as there is memory for; see kubectl logs")
	}
	return text, err
}

func (s *Session) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// Notes are what the client is to know of what it does not see, and why (IX-10). They are in /c/.wherry/notes too.
func (s *Session) Notes() []string { return s.notes }

func (s *Session) writeNotes(user int) error {
	var text []byte
	for _, n := range s.notes {
		text = append(append(text, n...), '\n')
	}
	return s.tree.write(filepath.Join(s.tree.files(), ".wherry", "notes"), text, user)
}
