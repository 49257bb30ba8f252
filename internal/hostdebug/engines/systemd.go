// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/internal/enginesocket"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// units asks systemd about services, by running systemctl.
type units struct {
	processes processes
	booted    string // a folder that is there where systemd runs
}

// booted is there where systemd is the machine's first process (sd_booted(3)).
const booted = "/run/systemd/system"

// ask is what systemctl prints.
func (u units) ask(ctx context.Context, args ...string) (string, error) {
	if _, err := os.Stat(u.booted); err != nil {
		return "", &enginesocket.Absent{What: "systemd does not run on this machine"}
	}
	program, err := exec.LookPath("systemctl")
	if err != nil {
		return "", &enginesocket.Absent{What: "systemd is not on this machine: there is no program systemctl in PATH"}
	}
	ctx, cancel := context.WithTimeout(ctx, podmanWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var trouble bytes.Buffer
	cmd.Stderr = &trouble
	out, err := cmd.Output()
	if text := strings.TrimSpace(trouble.String()); err != nil && text != "" {
		return "", errors.New(lastLine(text))
	}
	return string(out), err
}

// Find implements Engine.
func (u units) Find(ctx context.Context, t target.Target) (*Container, error) {
	text, err := u.ask(ctx, "show", "--property", "LoadState,ActiveState,SubState,MainPID,Result,ExecMainStatus", "--",
		t.Name)
	if err != nil {
		return nil, err
	}
	unit := properties(text)
	pid, err := unit.mainPID()
	if err != nil {
		return nil, err
	}
	c, err := u.processes.of(pid, t)
	if err != nil {
		return nil, fmt.Errorf("its main process has just ended: %w", err)
	}
	c.Name = strings.TrimSuffix(t.Name, ".service")
	c.ReadLog = func(ctx context.Context, lines int) (io.ReadCloser, error) {
		out, err := exec.CommandContext(ctx, "journalctl", "--unit", t.Name, "--lines", strconv.Itoa(lines),
			"--no-pager", "--output", "cat").Output()
		return io.NopCloser(bytes.NewReader(out)), err
	}
	return c, nil
}

// properties are a unit's, by name.
type unitProperties map[string]string

func properties(text string) unitProperties {
	all := unitProperties{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			all[name] = value
		}
	}
	return all
}

// mainPID is the process to join, or why there is none.
func (p unitProperties) mainPID() (int, error) {
	if p["LoadState"] == "not-found" {
		return 0, errors.New("there is no such unit: systemctl list-units lists those that there are")
	}
	pid, err := strconv.Atoi(p["MainPID"])
	switch {
	case p["MainPID"] == "":
		return 0, errors.New("it is not a service, and has no process")
	case err != nil || pid < 0:
		return 0, fmt.Errorf("systemd says that its main process is %q", p["MainPID"])
	case pid == 0 && p["ActiveState"] == "active":
		return 0,
			fmt.Errorf("it is active without a main process (%s): debug one of its processes with pid:NUMBER, see systemctl status",
				p["SubState"])
	case pid == 0:
		return 0,
			fmt.Errorf("it is not running (%s, result %s, status %s), and a unit leaves no files behind: its last words are in journalctl -u",
				p["ActiveState"], p["Result"], p["ExecMainStatus"])
	}
	return pid, nil
}

// List implements Engine.
func (u units) List(ctx context.Context) ([]*Container, error) {
	text, err := u.ask(ctx, "show", "--property", "Id,LoadState,ActiveState,SubState,MainPID", "--", "*.service")
	if err != nil {
		return nil, err
	}
	var all []*Container
	for part := range strings.SplitSeq(text, "\n\n") {
		unit := properties(part)
		pid, err := unit.mainPID()
		if err != nil || unit["Id"] == "" {
			continue // it has no process to join
		}
		t := target.Target{Engine: target.Systemd, Name: unit["Id"]}
		all = append(all, &Container{Target: t, Name: unit["Id"], State: Running, PID: pid})
	}
	return all, nil
}
