// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/node/logs"
	"github.com/wherryproject/wherry/internal/runtime/tap"
)

const (
	// replayMost is how much of a log is shown to who attaches, as much as is kept of a debug container.
	replayMost = 1 << 20
	// justRead is for how long somebody who has read a log is taken to know it: kubectl run reads it and attaches then.
	justRead = 10 * time.Second
	// endTime bounds the wait for the end of a container whose streams have ended.
	endTime = time.Second
	endTick = 10 * time.Millisecond
)

// readLogs remembers how far somebody has read a log, so that it is not shown again to them when they attach.
type readLogs struct {
	mu   sync.Mutex
	last map[readLog]position
}

type readLog struct{ reader, path string }

type position struct {
	offset int64
	at     time.Time
}

// note remembers how far a log was read. Other API servers do not say by whom: then all are the reader "".
func (l *readLogs) note(reader, path string, offset int64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, p := range l.last {
		if now.Sub(p.at) > justRead {
			delete(l.last, k)
		}
	}
	if l.last == nil {
		l.last = map[readLog]position{}
	}
	l.last[readLog{reader, path}] = position{offset, now}
}

// known is how much of a log somebody knows.
func (l *readLogs) known(reader, path string, now time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.last[readLog{reader, path}]
	if !ok || now.Sub(p.at) > justRead {
		return 0
	}
	return p.offset
}

// serveReplayed joins a client with a container whose output the runtime does not keep: it is shown the log first, and
// what the runtime streams from then on. live joins with that; nil if the container has ended: then its log is all
// there is.
func (s *Server) serveReplayed(w http.ResponseWriter, r *http.Request, id, path string, live process,
	o streamOptions) {
	to := &replayed{s: s, o: o, id: id, path: path, live: live,
		from: s.read.known(r.URL.Query().Get(wire.ParamReader), path, time.Now())}
	join(w, r, joint{options: o.forLibrary(), by: byAttach, run: to.process})
}

// replayed attaches one client through the runtime.
type replayed struct {
	s    *Server
	o    streamOptions
	id   string
	path string
	live process // nil: the container has ended
	from int64   // of the log
}

// logsOutput says whether the runtime knows what a container's log has of its output.
func (s *Server) logsOutput(id string) bool {
	return s.config.Attach != nil && s.config.Attach.LogsOutput(id)
}

// process attaches. A runtime that writes the log itself shows it and what follows. Of another the log is read before
// it is asked for its stream, so nothing comes twice. What the
// container prints in between is in the log only: it is shown before the first that the stream has, and if the stream
// has nothing, at the end.
func (a *replayed) process(ctx context.Context, in io.Reader, out, errOut io.WriteCloser,
	sizes <-chan remotecommand.TerminalSize) error {
	tty := a.o.TTY
	var stdout, stderr io.Writer
	if a.o.Stdout {
		stdout = out
	}
	if a.o.Stderr && !tty {
		stderr = errOut
	}
	var past io.Writer = stdout // as it was on the terminal, where there is one
	if tty && stdout != nil {
		past = terminalLines{stdout}
	}
	if a.live != nil && a.s.logsOutput(a.id) {
		o := tap.Options{TTY: tty, Stdout: stdout, Stderr: stderr, Resize: sizes}
		o.Past = func(log io.ReaderAt, size int64) error {
			_, err := logs.ReplayFrom(log, size, a.from, replayMost, past, stderr)
			return err
		}
		if a.o.Stdin {
			o.Stdin = in
		}
		return ended(ctx, a.s.config.Attach.Attach(ctx, a.id, o))
	}
	at, err := logs.Replay(a.path, a.from, replayMost, past, stderr)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if a.live == nil {
		return err
	}
	if !a.o.Stdin {
		in = nil
	}
	liveOut, liveErr := a.joining(stdout, past, at, false), a.joining(stderr, stderr, at, true)
	var toOut, toErr io.WriteCloser
	if stdout != nil {
		toOut = liveOut
	}
	if stderr != nil {
		toErr = liveErr
	}
	err = a.live(ctx, in, toOut, toErr, sizes)
	if ctx.Err() != nil {
		return ended(ctx, err)
	}
	if silent := liveOut.n.Load() == 0 && liveErr.n.Load() == 0; silent || err == nil {
		return a.missedAll(ctx, at, past, stderr, liveOut, liveErr, err)
	}
	return err
}

// missedAll shows what the log has of streams that had nothing, when the container has ended. To have ended before it
// could be joined is no failure.
func (a *replayed) missedAll(ctx context.Context, at int64, past, stderr io.Writer, out, errOut *joining,
	err error) error {
	if out.n.Load() > 0 {
		past = nil
	}
	if errOut.n.Load() > 0 {
		stderr = nil
	}
	if past == nil && stderr == nil || !a.ended(ctx, a.id) {
		return err
	}
	if _, rerr := logs.Replay(a.path, at, replayMost, past, stderr); rerr != nil {
		return err
	}
	return nil
}

// ended waits for the end of a container whose streams are over: its log is whole then.
func (a *replayed) ended(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	tick := time.NewTicker(endTick)
	defer tick.Stop()
	for {
		st, err := a.s.config.CRI.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err == nil && st.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// terminalLines ends lines as a terminal does: containerd's log has lost the carriage returns of a container's
// terminal, and that of the client is raw while it is attached, so that it adds none.
type terminalLines struct{ to io.Writer }

// Write implements io.Writer.
func (l terminalLines) Write(p []byte) (int, error) {
	if _, err := l.to.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// replayOf is the log that is shown to who attaches; "" if there is none, and then there is nothing to show.
func (s *Server) replayOf(r *http.Request) string {
	pod, name, err := s.containerOf(r)
	if err != nil {
		return ""
	}
	path, err := s.config.Host.LogPath(pod.UID, name, false)
	if err != nil {
		return ""
	}
	return path
}

// leftLog says whether a container that cannot be attached to has ended and left its log. Clients learn from the pod's
// status how it ended: kubectl run takes an attachment that fails for one that showed nothing, and prints the log once
// more. Debug containers are left out, as their output is kept elsewhere.
func (s *Server) leftLog(r *http.Request, id, path string) bool {
	pod, name, err := s.containerOf(r)
	if err != nil || slices.ContainsFunc(pod.Spec.EphemeralContainers,
		func(c corev1.EphemeralContainer) bool { return c.Name == name }) {
		return false
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	st, err := s.config.CRI.Runtime.ContainerStatus(r.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	return err == nil && st.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED
}
