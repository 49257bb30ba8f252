// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// start begins the container's script.
func (w *world) start(c *container) error {
	s, err := w.readySandbox(c.sandboxID)
	if err != nil {
		return err
	}
	if c.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetPid() == runtimeapi.NamespaceMode_TARGET {
		if _, err := w.pidNamespace(s, c); err != nil {
			return err
		}
	}
	if c.script.StartError != "" {
		return status.Error(codes.Unknown, c.script.StartError)
	}
	if w.logs && c.logPath != "" {
		if c.log, err = openLog(c.logPath); err != nil {
			return status.Errorf(codes.Unknown, "failed to create container loggers: %v", err)
		}
		c.log.lines("stdout", c.script.Stdout)
		c.log.lines("stderr", c.script.Stderr)
	}
	c.started = time.Now()
	w.emit(c.id, c.sandboxID, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	if c.script.Ends {
		reason, code := "", c.script.ExitCode
		if c.script.OOM {
			reason, code = reasonOOM, exitKilled
		}
		w.after(c, c.script.RunFor, code, reason)
	}
	return nil
}

// after ends the container's process later, unless something else does before.
func (w *world) after(c *container, d time.Duration, code int32, reason string) {
	if c.timer != nil {
		c.timer.Stop()
	}
	if d <= 0 {
		w.exit(c, code, reason)
		return
	}
	c.timer = time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.exit(c, code, reason)
	})
}

// signal sends the stop signal, the first time.
func (w *world) signal(c *container) {
	if c.signalled {
		return
	}
	c.signalled = true
	if !c.script.IgnoreStop {
		w.after(c, c.script.StopDelay, c.script.StopCode, "")
	}
}

// exit ends a running container's process, and those of all containers that are in its PID namespace with it.
func (w *world) exit(c *container, code int32, reason string) {
	if !c.running() {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.finished, c.exitCode, c.reason = time.Now(), code, reason
	if c.log != nil {
		c.log.close()
	}
	close(c.ended)
	w.emit(c.id, c.sandboxID, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	for _, other := range w.containersOf(c.sandboxID) {
		if other != c && other.pidns == c.id {
			w.exit(other, exitKilled, "")
		}
	}
}

// remove kills the container and forgets it.
func (w *world) remove(c *container) {
	w.exit(c, exitKilled, "")
	delete(w.containers, c.id)
	w.release(c.name)
	w.emit(c.id, c.sandboxID, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
}

// logFile is a container's log in CRI format: time, stream, F, line.
type logFile struct {
	mu   sync.Mutex
	path string
	file *os.File
}

func openLog(path string) (*logFile, error) {
	l := &logFile{path: path}
	return l, l.reopen()
}

func (l *logFile) reopen() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file = f
	return nil
}

func (l *logFile) lines(stream string, lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range lines {
		_, _ = io.WriteString(l.file, fmt.Sprintf("%s %s F %s\n", time.Now().UTC().Format(time.RFC3339Nano), stream,
			line))
	}
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.file.Close()
}
