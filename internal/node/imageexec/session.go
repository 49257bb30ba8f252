// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/exitcode"
	"github.com/wherryproject/wherry/internal/node/ops"
	"github.com/wherryproject/wherry/internal/node/userns"
	"github.com/wherryproject/wherry/internal/node/volume"
	"github.com/wherryproject/wherry/internal/oneline"
)

// create makes the container, and before it a temporary sandbox if the pod has none.
func (s *Session) create(ctx context.Context, pod *corev1.Pod, p place, config *runtimeapi.ContainerConfig) error {
	// Cancelled is not undone: what the client called off is waited for, so that it can be taken away.
	calls, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	var sandbox *runtimeapi.PodSandboxConfig
	var id string
	var ips []string
	s.below = s.parent(pod)
	users, err := s.e.Ops.UsersOf(pod)
	if err != nil {
		return err
	}
	config.Linux.SecurityContext.NamespaceOptions.UsernsOptions = ops.UserOptions(users)
	ops.MapMounts(config.GetMounts(), users)
	if p.Sandbox != nil {
		id, ips = p.Sandbox.ID, p.Sandbox.IPs
		sandbox = ops.SandboxConfig(ops.SandboxInput{Pod: pod, Attempt: p.Sandbox.Attempt, Node: s.e.Ops.Node,
			LogFolder: s.e.Ops.Logs.Of(pod), CgroupParent: s.parent(pod), Users: users})
	} else {
		s.below = s.parent(standIn(pod, s.id))
		if d := pod.Spec.ActiveDeadlineSeconds; d != nil { // nothing of a pod lasts longer
			s.limit = time.Duration(min(*d, math.MaxInt32)) * time.Second
		}
		if sandbox, id, ips, err = s.makeSandbox(calls, standIn(pod, s.id), users); err != nil {
			return fmt.Errorf("creating a sandbox for the command: %s", cri.Message(err))
		}
	}
	if pod.Spec.HostNetwork {
		ips = s.e.Ops.Node.IPs
	}
	if err := s.writeHosts(pod, ips); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.created, s.inSandbox = true, id
	made, err := s.e.Ops.CRI.Runtime.CreateContainer(calls, &runtimeapi.CreateContainerRequest{PodSandboxId: id,
		Config: config, SandboxConfig: sandbox})
	if err != nil {
		if s.ending(calls, id) {
			return refuse(http.StatusConflict,
				"pod %q has just ended: try again in a moment, to look at what is left of it", pod.Name)
		}
		if cri.NotFound(err) {
			return refuse(http.StatusConflict, "pod %q changed while the command was being prepared: %s", pod.Name,
				cri.Message(err))
		}
		return fmt.Errorf("creating the container of image %s: %s", s.req.Image, cri.Message(err))
	}
	s.container = made.GetContainerId()
	return ctx.Err()
}

// ending reports whether the sandbox of a command, which could not be begun in it, has been stopped meanwhile. The
// runtime says so in words of its own, if at all.
func (s *Session) ending(ctx context.Context, sandbox string) bool {
	got, err := s.e.Ops.CRI.Runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox})
	if err != nil {
		return cri.NotFound(err)
	}
	return got.GetStatus().GetState() != runtimeapi.PodSandboxState_SANDBOX_READY
}

func (s *Session) parent(pod *corev1.Pod) string {
	if s.e.Ops.Cgroups == nil {
		return ""
	}
	return s.e.Ops.Cgroups.ParentOf(pod)
}

// makeSandbox makes a temporary sandbox (IX-09), with a cgroup of its own and the pod's limits.
func (s *Session) makeSandbox(ctx context.Context, standIn *corev1.Pod,
	users *userns.Range) (config *runtimeapi.PodSandboxConfig, id string, ips []string, err error) {
	if s.e.Ops.Cgroups != nil {
		s.cgroup = true
		if err := s.e.Ops.Cgroups.EnsurePod(standIn); err != nil {
			return nil, "", nil, err
		}
	}
	config = sandboxConfig(standIn, s.id, s.e.Ops.Node, s.parent(standIn))
	config.Linux.SecurityContext.NamespaceOptions.UsernsOptions = ops.UserOptions(users)
	s.sandbox = true
	made, err := s.e.Ops.RunSandbox(ctx, standIn, config)
	if err != nil {
		return nil, "", nil, err
	}
	st,
		err := s.e.Ops.CRI.Runtime.PodSandboxStatus(ctx,
		&runtimeapi.PodSandboxStatusRequest{PodSandboxId: made.GetPodSandboxId()})
	if err != nil {
		return nil, "", nil, err
	}
	if ip := st.GetStatus().GetNetwork().GetIp(); ip != "" {
		ips = append(ips, ip)
	}
	for _, ip := range st.GetStatus().GetNetwork().GetAdditionalIps() {
		ips = append(ips, ip.GetIp())
	}
	return config, made.GetPodSandboxId(), ips, nil
}

// writeHosts writes the command's hosts file. It is the session's own: the pod's may have gone with its volumes.
func (s *Session) writeHosts(pod *corev1.Pod, ips []string) error {
	in := volume.HostsInput{Pod: pod, IPs: ips, ClusterDomain: s.e.Ops.Node.ClusterDomain}
	if pod.Spec.HostNetwork {
		in.Host, _ = os.ReadFile("/etc/hosts") // without one, the command sees the aliases alone
	}
	if err := os.WriteFile(s.tree.hosts(), volume.EtcHosts(in), 0o644); err != nil {
		return err
	}
	return os.Chmod(s.tree.hosts(), 0o644) // past the umask
}

// Run starts the command, hands its streams over, waits for its end, and takes the session away: whoever has the exit
// code finds nothing left (IX-05). It returns the command's exit code; one that cannot be found in the image, or not be
// executed, ends with 127 or 126 as in a shell. When ctx ends, the client is gone: the command is killed.
func (s *Session) Run(ctx context.Context, streams Streams) (code int, err error) {
	defer s.Close()
	s.showNotes(streams)
	s.follow()
	if limit := s.limit; limit > 0 {
		defer time.AfterFunc(limit, func() { s.end("the pod's activeDeadlineSeconds are over") }).Stop()
	}
	if err := s.start(ctx); err != nil {
		text := cri.Message(err)
		if code := startCode(text); code != 0 {
			say(streams, "cannot run the command: "+innermost(text))
			return code, nil
		}
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		if s.ending(look, s.inSandbox) {
			return 0, errors.New("the pod has just ended: try again in a moment, to look at what is left of it")
		}
		return 0, fmt.Errorf("starting the command: %s", text)
	}
	if err := s.e.Runtime.Attach(ctx, s.container, streams); err != nil {
		return 0, fmt.Errorf("attaching to the command: %w", err)
	}
	// The process has ended; this waits until the runtime has noted how.
	st, err := awaitEnd(ctx, s.e.Ops.CRI, s.container, cleanTime)
	code, why := int(st.GetExitCode()), ""
	switch {
	case cri.NotFound(err):
		code, why = 137, "the pod's sandbox was stopped"
	case err != nil:
		return 0, fmt.Errorf("the command's exit code: %s", cri.Message(err))
	}
	if cut := s.cutShort(code); cut != "" {
		why = cut
	}
	if why != "" {
		sayLast(streams, "the command was terminated: "+why)
	}
	return code, nil
}

// end takes the session away though its command has not ended. The client gets the reason.
func (s *Session) end(why string) {
	s.cut.CompareAndSwap(nil, &why)
	s.Close()
}

// cutShort is why a command has ended that would have gone on; "" if it ended by itself, as far as is known. A pod's
// end kills what runs in its sandbox, and nobody but the pod knows why.
func (s *Session) cutShort(code int) string {
	if why := s.cut.Load(); why != nil {
		return *why
	}
	if code != 137 && code != 143 {
		return ""
	}
	if pod := s.e.Pod(s.uid); pod == nil || pod.DeletionTimestamp != nil {
		return podGoes
	}
	return ""
}

// podGoes is the reason that is given for a pod that is deleted.
const podGoes = "the pod is being deleted"

// start starts the command. It is waited for though the client may have gone: while it is being started, a container
// cannot be removed.
func (s *Session) start(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.closed {
		return errors.New("the client disconnected")
	}
	calls, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	_, err := s.e.Ops.CRI.Runtime.StartContainer(calls, &runtimeapi.StartContainerRequest{ContainerId: s.container})
	if err == nil && s.below != "" {
		err = s.e.Ops.Cgroups.LimitPIDs(s.below, s.container, s.e.Ops.Node.Cgroup.Debug.PIDs)
	}
	return err
}

// showNotes shows the notes to the client, before any output of the command.
func (s *Session) showNotes(streams Streams) {
	for _, n := range s.notes {
		say(streams, n)
	}
}

// say writes a line to the client's stderr, or to its terminal. A client that asked for neither finds it in the notes'
// file.
func say(streams Streams, line string) {
	line = oneline.Of(line) // paths in it are the pod author's, and the stream may end at a terminal
	switch {
	case streams.Stderr != nil:
		_, _ = fmt.Fprintf(streams.Stderr, "wherry: %s\n", line)
	case streams.TTY && streams.Stdout != nil:
		_, _ = fmt.Fprintf(streams.Stdout, "wherry: %s\r\n", line)
	}
}

// sayLast writes a line to the client after the output of the command, which need not have ended its own.
func sayLast(streams Streams, line string) {
	if streams.TTY && streams.Stdout != nil {
		_, _ = io.WriteString(streams.Stdout, "\r\n")
	}
	say(streams, line)
}

// startCode is the exit code of a command that could not be started: 127 when it is not there, 126 when it cannot be
// executed, 0 when the error is about something else. The runtime says so in words only.
func startCode(text string) int {
	_, why, about := strings.Cut(text, "exec: ")
	if !about {
		return 0
	}
	return exitcode.Of(why)
}

// innermost is the last part of a chain of errors, from the mark of the executable on.
func innermost(text string) string {
	if i := strings.LastIndex(text, "exec: "); i >= 0 {
		text = text[i+len("exec: "):]
	}
	return strings.TrimSuffix(text, ": unknown")
}

// Close takes all of the session away: container, temporary sandbox, mounts, folder. It may be called more than once,
// and at any time; each call returns when all is done. What could not be taken away is left to Run, and logged.
func (s *Session) Close() {
	s.closing.Do(func() {
		s.changing.Lock()
		defer s.changing.Unlock()
		s.closed = true
		s.unfollow()
		ctx, cancel := context.WithTimeout(context.Background(), cleanTime)
		defer cancel()
		if err := s.remove(ctx); err != nil {
			s.e.Logger.Warn("an image exec was not completely removed; it will be tried again", "session", s.id, "err",
				err)
			s.e.leave(s)
		}
		s.e.mu.Lock()
		delete(s.e.live, s.id)
		s.e.logs -= s.logged
		s.e.mu.Unlock()
		s.release()
	})
}

func (s *Session) remove(ctx context.Context) error {
	var errs []error
	switch {
	case s.container != "" && !s.sandbox:
		s.e.partWith(ctx, s.container)
		errs = append(errs, removeContainer(ctx, s.e.Ops.CRI, s.container))
	case s.created || s.sandbox:
		errs = append(errs, removeLabelled(ctx, s.e.Ops.CRI, map[string]string{labelSession: s.id}))
	}
	if s.cgroup {
		errs = append(errs, s.e.Ops.Cgroups.RemovePod(types.UID(s.id)))
	}
	if s.tree != nil {
		errs = append(errs, removeTree(s.tree.dir))
	}
	return errors.Join(errs...)
}
