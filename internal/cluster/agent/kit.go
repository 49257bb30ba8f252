// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/mountfd"
)

// Kit is a folder of tools that are ready (package kit), so that a session takes neither the time to unpack them nor
// that of the main program to start.
type Kit struct {
	dir     string
	program *os.File // of sessions
	own     *os.File // the agent's program, which guards them
}

// kitProgram is the program of sessions in a kit, as package session has its name, which takes a program time to start.
const kitProgram = "session"

// MakeKit has a program of wherry's, the main one, unpack a kit into a folder, and opens it.
func MakeKit(program, dir string) (*Kit, error) {
	if !mountfd.KernelCan() {
		return nil, errors.New("the kernel cannot show it to sessions")
	}
	cmd := exec.Command(program, talk.KitWord, dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("unpack it: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	k := &Kit{dir: dir}
	var err error
	if k.program, err = os.Open(filepath.Join(dir, kitProgram)); err != nil {
		return nil, err
	}
	if k.own, err = os.Open("/proc/self/exe"); err != nil {
		return nil, errors.Join(err, k.program.Close())
	}
	// Its folder may be where no program runs. Without a request it does nothing.
	if err := exec.Command(k.path(), talk.Word).Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		k.Close()
		return nil, err
	}
	return k, nil
}

// path is the program of sessions, as it is found from whichever mount namespace.
func (k *Kit) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), k.program.Fd()) }

// lend makes the descriptors for one session: a mount that cannot be written to, and the guard's program.
func (k *Kit) lend() (mount, guard *os.File, err error) {
	fd, err := mountfd.Clone(k.dir, false, false)
	if err != nil {
		return nil, nil, fmt.Errorf("show the session its tools: %w", err)
	}
	return os.NewFile(uintptr(fd), k.dir), k.own, nil
}

// Close closes it. Sessions that have it keep it.
func (k *Kit) Close() {
	k.program.Close()
	k.own.Close()
}
