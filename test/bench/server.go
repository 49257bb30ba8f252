// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// server is a wherry server in a process of its own.
type server struct {
	wherry  string
	dataDir string
	cmd     *exec.Cmd
	log     *os.File
	begun   time.Time
	exited  chan error
}

// patience is how long anything may take before the benchmarks give up on it.
const patience = 2 * time.Minute

// startServer starts a server on dataDir, which may be missing, and returns at once.
func startServer(ctx context.Context, s settings, dataDir string, flags ...string) (*server, error) {
	args := append([]string{"server", "--data-dir", dataDir, "--secure-port", "0", "--kubelet-port", "0"}, flags...)
	if s.logs != "" {
		args = append(args, "--log-level", s.logs)
	}
	log, err := os.Create(dataDir + ".log")
	if err != nil {
		return nil, err
	}
	v := &server{wherry: s.wherry, dataDir: dataDir, log: log, exited: make(chan error, 1)}
	v.cmd = exec.Command(s.wherry, args...) // not bound to ctx: it is purged after it has stopped cleanly
	v.cmd.Stdout, v.cmd.Stderr = log, log
	if s.logs != "" {
		v.cmd.Stderr = io.MultiWriter(log, os.Stderr)
	}
	v.begun = time.Now()
	if err := v.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { v.exited <- v.cmd.Wait() }()
	return v, ctx.Err()
}

func (v *server) pid() int { return v.cmd.Process.Pid }

// ready waits until the server says in its log that it is.
func (v *server) ready(ctx context.Context) error {
	return v.poll(ctx, "the server's readiness", 5*time.Millisecond, func() bool {
		text, err := os.ReadFile(v.log.Name())
		return err == nil && strings.Contains(string(text), "server is ready")
	})
}

// poll waits until ok, for as long as the server lives.
func (v *server) poll(ctx context.Context, what string, every time.Duration, ok func() bool) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	late := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case err := <-v.exited:
			v.exited <- err
			text, _ := os.ReadFile(v.log.Name())
			return fmt.Errorf("waiting for %s: the server has ended (%v): %s", what, err, text)
		case <-late:
			return fmt.Errorf("waited %v for %s", patience, what)
		}
	}
	return nil
}

// purge stops the server and removes its folder with everything of it.
func (v *server) purge() error {
	defer v.log.Close()
	if err := v.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-v.exited:
	case <-time.After(patience):
		_ = v.cmd.Process.Kill()
		<-v.exited
		return errors.New("the server did not stop on SIGTERM and was killed")
	}
	if out, err := exec.Command(v.wherry, "purge", "--yes", "--data-dir", v.dataDir).CombinedOutput(); err != nil {
		return fmt.Errorf("wherry purge: %w: %s", err, out)
	}
	if _, err := os.Stat(v.dataDir); err == nil {
		return fmt.Errorf("wherry purge left %s", v.dataDir)
	}
	return nil
}

func kubeconfig(dataDir string) string { return filepath.Join(dataDir, "kubeconfig") }
