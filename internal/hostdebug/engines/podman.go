// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/internal/enginesocket"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// podman runs podman's program: there is no daemon to ask.
type podman struct {
	program string
	// as are the users whose containers are looked up, in turn: root, and the user who called sudo.
	as []account
}

// account is a user of this machine; the zero value is the caller himself.
type account struct {
	uid, gid uint32
	home     string
}

func newPodman(o Options) (Engine, error) {
	program, err := exec.LookPath("podman")
	if err != nil {
		return nil, &enginesocket.Absent{What: "podman is not on this machine: there is no program podman in PATH"}
	}
	p := podman{program, []account{{}}}
	if caller, ok := sudoer(o.Getenv("SUDO_UID")); ok && o.UID == 0 {
		p.as = append(p.as, caller)
	}
	return p, nil
}

// sudoer is the user who called sudo, if it was not root.
func sudoer(uid string) (account, bool) {
	u, err := user.LookupId(uid)
	if err != nil {
		return account{}, false
	}
	n, uerr := strconv.ParseUint(u.Uid, 10, 32)
	g, gerr := strconv.ParseUint(u.Gid, 10, 32)
	return account{uint32(n), uint32(g), u.HomeDir}, uerr == nil && gerr == nil && n != 0
}

// command is podman as an account sees it.
func (a account) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	if a.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
		cmd.Dir = "/"
		// Root's own variables do not apply to them.
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.home,
			fmt.Sprintf("XDG_RUNTIME_DIR=/run/user/%d", a.uid)}
	}
	return cmd
}

// podmanWithin bounds how long podman may take to answer.
const podmanWithin = 30 * time.Second

// run is what podman prints.
func (p podman) run(ctx context.Context, as account, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, podmanWithin)
	defer cancel()
	cmd := as.command(ctx, p.program, args...)
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

// lastLine is the line in which a program reports its error.
func lastLine(text string) string {
	return strings.TrimPrefix(text[strings.LastIndexByte(text, '\n')+1:], "Error: ")
}

// Find implements Engine.
func (p podman) Find(ctx context.Context, t target.Target) (*Container, error) {
	var first error
	for _, as := range p.as {
		c, err := p.findAs(ctx, as, t)
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil,
		fmt.Errorf("%w (podman ps -a lists those that there are; those of another user are found when he calls sudo, or by their process: pid:NUMBER)",
			first)
}

func (p podman) findAs(ctx context.Context, as account, t target.Target) (*Container, error) {
	out, err := p.run(ctx, as, "inspect", "--type", "container", "--", t.Name)
	if err != nil {
		return nil, err
	}
	var got []inspected
	if err := json.Unmarshal(out, &got); err != nil {
		return nil, fmt.Errorf("podman inspect has an answer that cannot be read: %w", err)
	}
	if len(got) != 1 {
		return nil, fmt.Errorf("podman inspect has %d answers", len(got))
	}
	c := got[0].container(target.Podman)
	if as.uid != 0 && c.Layers != nil { // what an overlay without root writes besides is in other attributes
		c.Layers.Options = append(c.Layers.Options, "userxattr")
	}
	c.ReadLog = func(ctx context.Context, lines int) (io.ReadCloser, error) {
		out, err := as.command(ctx, p.program, "logs", "--tail", strconv.Itoa(lines), "--", c.ID).CombinedOutput()
		return io.NopCloser(bytes.NewReader(out)), err
	}
	c.OpenImage = func(ctx context.Context, image string) (io.ReadCloser, error) { return p.save(ctx, as, image) }
	return c, nil
}

// save begins to read an image as an archive. Whether there is one is known when it returns.
func (p podman) save(ctx context.Context, as account, image string) (io.ReadCloser, error) {
	if _, err := p.run(ctx, as, "image", "inspect", "--format", "{{.Id}}", "--", image); err != nil {
		return nil, err
	}
	cmd := as.command(ctx, p.program, "image", "save", "--quiet", "--format", "docker-archive", "--", image)
	s := &saving{cmd: cmd}
	cmd.Stderr = &s.trouble
	var err error
	if s.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	return s, cmd.Start()
}

// saving is an archive that a program writes; one that it does not finish is an error of the reader.
type saving struct {
	cmd     *exec.Cmd
	out     io.ReadCloser
	trouble bytes.Buffer
	ended   bool
}

// Read implements io.Reader.
func (s *saving) Read(p []byte) (int, error) {
	n, err := s.out.Read(p)
	if err != io.EOF || s.ended {
		return n, err
	}
	s.ended = true
	if werr := s.cmd.Wait(); werr != nil {
		return n, fmt.Errorf("%s: %w", lastLine(strings.TrimSpace(s.trouble.String())), werr)
	}
	return n, io.EOF
}

// Close ends the program, if it has not ended.
func (s *saving) Close() error {
	if s.ended {
		return nil
	}
	s.ended = true
	err := s.out.Close()
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()         // it was killed
	return err
}

// List implements Engine.
func (p podman) List(ctx context.Context) ([]*Container, error) {
	var all []*Container
	for _, as := range p.as {
		out, err := p.run(ctx, as, "ps", "--all", "--no-trunc", "--format", "json")
		if err != nil {
			return nil, err
		}
		list, err := podmanList(out)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
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
