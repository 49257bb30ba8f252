// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/wherryproject/wherry/internal/hostdebug/guard"
	"github.com/wherryproject/wherry/internal/hostdebug/ocispec"
)

// exec runs the debugger by runc and waits for it.
func (s *session) exec(ctx context.Context, at tools, root, files string, img ocispec.Image,
	streams Streams) (int, error) {
	place := ocispec.Placement{Root: root, Files: files, Cgroup: guard.Cgroup(s.id), Hostname: s.hostname(),
		OwnNetwork: true}
	switch {
	case s.held != nil:
		place.Namespaces, place.OwnNetwork = s.held.paths(), s.held.ownsNetwork()
	case s.keeper != nil:
		place.Namespaces, place.OwnNetwork = s.keeper.network(), s.keeper.ownsNetwork()
	}
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return 0, err
	}
	place.Bounding = bounding(string(status))
	spec, err := ocispec.New(s.req.Options, img, place)
	if err != nil {
		return 0, err
	}
	if code, err := runnable(ctx, root, spec.Process); err != nil {
		return code, err
	}
	ocispec.Through(spec, at.first)
	if ocispec.Filtered(s.req.Options) {
		spec.Linux.Seccomp = seccomp.DefaultProfile(spec)
	}
	dir := filepath.Join(s.machine.Dir(s.id), "bundle")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600); err != nil {
		return 0, err
	}
	return s.wait(ctx, at.runc, dir, streams)
}

// wait starts runc and waits for the command's end.
func (s *session) wait(ctx context.Context, runc, dir string, streams Streams) (int, error) {
	log := filepath.Join(dir, "log.json")
	cmd := exec.Command(runc, "--root", filepath.Join(dir, "state"), "--log", log, "--log-format", "json", "run",
		"--no-new-keyring", "--preserve-fds", "1", "--bundle", dir, "wherry-debug-"+s.id)
	cmd.Dir = "/"
	// Should this process be killed, the guard ends the rest.
	pidfd := -1
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, PidFD: &pidfd}
	cmd.Stdout, cmd.Stderr = streams.Out, streams.Err
	var feeding io.Closer
	if in, ok := streams.In.(*os.File); ok || streams.In == nil {
		if ok {
			cmd.Stdin = in
		}
	} else { // not through cmd, which would wait for the end of input that nobody reads any more
		pipe, err := cmd.StdinPipe()
		if err != nil {
			return 0, err
		}
		feeding = pipe
	}
	notice, err := s.endNotice()
	if err != nil {
		return 0, err
	}
	defer notice.close()
	cmd.ExtraFiles = []*os.File{notice.theirs}
	restore := keepTerminal(streams.In)
	defer restore()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("runc: %w", err)
	}
	notice.listen()
	if feeding != nil {
		go func() {
			_, _ = io.Copy(feeding.(io.Writer), streams.In) // the command deals with its end
			_ = feeding.Close()
		}()
	}
	defer unix.Close(pidfd)
	s.begun()
	early := s.endEarly(ctx, pidfd)
	err = cmd.Wait()
	restore()
	if code, ended := early(); ended != nil {
		return code, ended
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	code, err := s.outcome(exitOf(exit), runcTrouble(log))
	if err != nil {
		return code, err
	}
	return code, s.outOfMemory(code, notice.kills())
}

// outcome is the result of a session, from the exit code of runc and its message about a command that did not start.
func (s *session) outcome(code int, trouble string) (int, error) {
	switch ended := s.gone(); {
	case trouble != "" && ended:
		return killed,
			&Ended{fmt.Sprintf("%s has ended before the debugger was in it; try again when it runs, or look at its last files when it has exited",
				s.req.Target.Target)}
	case trouble != "":
		return 0, fmt.Errorf("the debugger could not be started: %s", trouble)
	case code == killed && ended:
		return code, &Ended{fmt.Sprintf("%s has ended", s.req.Target.Target)}
	}
	return code, nil
}

// keepTerminal saves the settings of a terminal and returns a function to restore them: runc may be killed before it
// restores them itself.
func keepTerminal(in io.Reader) (restore func()) {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	was, err := term.GetState(int(f.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { _ = term.Restore(int(f.Fd()), was) }
}
