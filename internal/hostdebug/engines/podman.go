// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// podman is podman by its program: it has no daemon that could be asked.
type podman struct{ program string }

func newPodman(Options) (Engine, error) {
	program, err := exec.LookPath("podman")
	if err != nil {
		return nil, &Absent{"podman is not on this machine: there is no program podman in PATH"}
	}
	return podman{program}, nil
}

// podmanWithin bounds how long podman may take to answer.
const podmanWithin = 30 * time.Second

// run is what podman prints.
func (p podman) run(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, podmanWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.program, args...)
	var trouble bytes.Buffer
	cmd.Stderr = &trouble
	out, err := cmd.Output()
	if err != nil {
		if text := strings.TrimSpace(trouble.String()); text != "" {
			return nil, errors.New(lastLine(text))
		}
		return nil, err
	}
	return out, nil
}

// lastLine is where a program says what was wrong.
func lastLine(text string) string {
	return strings.TrimPrefix(text[strings.LastIndexByte(text, '\n')+1:], "Error: ")
}

func (p podman) Find(ctx context.Context, t target.Target) (*Container, error) {
	out, err := p.run(ctx, "inspect", "--type", "container", "--", t.Name)
	if err != nil {
		return nil, fmt.Errorf("%w (podman ps -a lists those that there are; containers of another user are seen by that user only)",
			err)
	}
	var got []inspected
	if err := json.Unmarshal(out, &got); err != nil || len(got) != 1 {
		return nil, fmt.Errorf("podman inspect has %d answers (%w)", len(got), err)
	}
	c := got[0].container(target.Podman)
	c.ReadLog = func(ctx context.Context, lines int) (io.ReadCloser, error) {
		cmd := exec.CommandContext(ctx, p.program, "logs", "--tail", strconv.Itoa(lines), "--", c.ID)
		out, err := cmd.CombinedOutput()
		return io.NopCloser(bytes.NewReader(out)), err
	}
	return c, nil
}

func (p podman) List(ctx context.Context) ([]*Container, error) {
	out, err := p.run(ctx, "ps", "--all", "--no-trunc", "--format", "json")
	if err != nil {
		return nil, err
	}
	return podmanList(out)
}

// podmanList reads what podman ps prints.
func podmanList(out []byte) ([]*Container, error) {
	var got []struct {
		ID       string `json:"Id"`
		Names    []string
		Image    string
		State    string
		PID      int `json:"Pid"`
		Created  int64
		ExitCode int
		IsInfra  bool
	}
	if err := json.Unmarshal(out, &got); err != nil {
		return nil, fmt.Errorf("podman ps: an answer that cannot be read: %w", err)
	}
	var all []*Container
	for _, g := range got {
		c := &Container{ID: g.ID, Image: g.Image, State: stateOf(g.State), PID: max(g.PID, 0), ExitCode: g.ExitCode,
			Created: time.Unix(g.Created, 0)}
		if len(g.Names) > 0 {
			c.Name = g.Names[0]
		}
		c.Target = target.Target{Engine: target.Podman, Name: nameOrID(c.Name, c.ID)}
		all = append(all, c)
	}
	return all, nil
}
