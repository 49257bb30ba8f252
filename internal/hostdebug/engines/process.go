// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// processes is the process table.
type processes struct{ proc string }

// Find implements Engine.
func (p processes) Find(_ context.Context, t target.Target) (*Container, error) {
	pid, err := strconv.Atoi(t.Name)
	if err != nil {
		return nil, err
	}
	return p.of(pid, t)
}

// of describes a process.
func (p processes) of(pid int, t target.Target) (*Container, error) {
	dir := filepath.Join(p.proc, strconv.Itoa(pid))
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Readlink(filepath.Join(dir, "exe")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%d is a thread of the kernel, which has no files and no namespaces of its own", pid)
	}
	c := &Container{Target: t, Name: strings.TrimSpace(string(name)), State: Running, PID: pid}
	// What cannot be read stays unknown: where it matters, the kernel will refuse again.
	env, _ := os.ReadFile(filepath.Join(dir, "environ"))
	args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	c.Env, c.Args = zeroEnded(env), zeroEnded(args)
	return c, nil
}

// zeroEnded splits a list whose entries the kernel ends with zero bytes.
func zeroEnded(text []byte) (all []string) {
	for part := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte{0}), []byte{0}) {
		if len(part) > 0 {
			all = append(all, string(part))
		}
	}
	return all
}

// List implements Engine. It has every process that is not the kernel's.
func (p processes) List(context.Context) ([]*Container, error) {
	dirs, err := os.ReadDir(p.proc)
	if err != nil {
		return nil, err
	}
	var all []*Container
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		c, err := p.of(pid, target.Target{Engine: target.PID, Name: d.Name()})
		if err != nil {
			continue // it has ended, or is the kernel's
		}
		all = append(all, c)
	}
	return all, nil
}
