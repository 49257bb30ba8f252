// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
)

// Child is a process that does one thing for the agent.
type Child struct {
	In       *os.File // what it reads; nil: nothing
	Out, Err *os.File // what it has written; with a terminal, Out is that and In too
	Terminal *os.File // nil: there is none

	cmd      *exec.Cmd
	ask      *os.File
	reports  *bufio.Scanner
	report   *os.File
	let      sync.Once
	patience time.Duration // how long it may take to end when it was asked to
	kill     *time.Timer   // when that is over
	place    Place
}

// Streams are those that a child is to have.
type Streams struct{ In, Out, Err, TTY bool }

// Start starts a session's process: the kit's program, else that of a file.
func (p Place) Start(program string, ask talk.Ask, s Streams) (*Child, error) {
	if ask.Kit = p.Kit != nil; ask.Kit {
		program = p.Kit.path()
	}
	text, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	if len(text) >= talk.MostAsk {
		return nil, errors.New("the request is too long")
	}
	c := &Child{cmd: exec.Command(program, talk.Word), patience: endTime, place: p}
	c.cmd.Args[0] = "wherry"
	c.cmd.Dir, c.cmd.Env = "/", environment(os.Environ())
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.launch(s); err != nil {
		c.Close()
		return nil, err
	}
	if err := c.instruct(append(text, '\n')); err != nil {
		c.End()
		return nil, fmt.Errorf("the session's process does not hear: %w", err)
	}
	return c, nil
}

// launch starts the process with its ends of the pipes, which are its own alone then: that it has ended is seen at
// them.
func (c *Child) launch(s Streams) error {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	if err := c.open(s, &theirs); err != nil {
		return err
	}
	if err := c.place.do(c.cmd.Start); err != nil {
		return fmt.Errorf("start the session's process: %w", err)
	}
	return nil
}

// instructTime is how long a child may take to read what it is to do, which may be more than a pipe holds.
const instructTime = 30 * time.Second

// instruct writes to the child what it is to do.
func (c *Child) instruct(text []byte) error {
	if err := c.ask.SetWriteDeadline(time.Now().Add(instructTime)); err != nil {
		return err
	}
	_, err := c.ask.Write(text)
	return err
}

// open makes the pipes. Those ends that are the child's are added to theirs, also if it fails.
func (c *Child) open(s Streams, theirs *[]*os.File) error {
	pipe := func(toChild bool) (ours, their *os.File, err error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		if toChild {
			r, w = w, r
		}
		*theirs = append(*theirs, w)
		return r, w, nil
	}
	askEnd, reportEnd := (*os.File)(nil), (*os.File)(nil)
	var err error
	if c.ask, askEnd, err = pipe(true); err != nil {
		return err
	}
	if c.report, reportEnd, err = pipe(false); err != nil {
		return err
	}
	c.reports = bufio.NewScanner(c.report)
	c.reports.Buffer(nil, talk.MostReport)
	c.cmd.ExtraFiles = []*os.File{askEnd, reportEnd} // talk.AskFD, talk.ReportFD
	if kit := c.place.Kit; kit != nil {
		mount, guard, err := kit.lend()
		if err != nil {
			return err
		}
		*theirs = append(*theirs, mount)
		c.cmd.ExtraFiles = append(c.cmd.ExtraFiles, mount, guard) // talk.KitFD, talk.GuardFD
	}
	if s.TTY {
		return c.openTerminal(theirs)
	}
	var end *os.File
	if s.In {
		if c.In, end, err = pipe(true); err != nil {
			return err
		}
		c.cmd.Stdin = end
	}
	if s.Out {
		if c.Out, end, err = pipe(false); err != nil {
			return err
		}
		c.cmd.Stdout = end
	}
	if s.Err {
		if c.Err, end, err = pipe(false); err != nil {
			return err
		}
		c.cmd.Stderr = end
	}
	return nil
}

// openTerminal gives the child a terminal that is its own.
func (c *Child) openTerminal(theirs *[]*os.File) error {
	ours, tty, err := newTerminal()
	if err != nil {
		return err
	}
	*theirs = append(*theirs, tty)
	c.Terminal, c.In, c.Out = ours, ours, ours
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = tty, tty, tty
	c.cmd.SysProcAttr.Setctty = true // its standard input
	return nil
}

// environment is what a session's process has of the agent's: where the cluster is, it need not know. (Pure.)
func environment(own []string) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	for _, v := range own {
		name, _, _ := strings.Cut(v, "=")
		switch strings.ToUpper(name) {
		case "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "CONTAINER_RUNTIME_ENDPOINT", "CONTAINERD_ADDRESS":
			env = append(env, v)
		}
	}
	return env
}

// Next is the child's next report; nil if there is none any more. One that is too long is none, and the child does not
// wait for it to be heard.
func (c *Child) Next() *talk.Report {
	for c.reports.Scan() {
		var r talk.Report
		if json.Unmarshal(c.reports.Bytes(), &r) == nil {
			return &r
		}
	}
	_ = c.report.Close()
	return nil
}

// endTime is how long a child may take to end when it was asked to: its guard waits for processes too.
const endTime = 45 * time.Second

// LetGo asks the child to end. One that does not is killed: its guard takes away what it leaves.
func (c *Child) LetGo() {
	c.let.Do(func() {
		c.ask.Close()
		c.kill = time.AfterFunc(c.patience, func() { _ = c.cmd.Process.Kill() })
	})
}

// End asks the child to end, and waits for it.
func (c *Child) End() {
	c.LetGo()
	_ = c.cmd.Wait() // how it ended was in its reports
	c.kill.Stop()
	c.Close()
	c.place.tidy()
}

// Close closes the agent's ends of all pipes. It can be repeated.
func (c *Child) Close() {
	for _, f := range []*os.File{c.ask, c.report, c.In, c.Out, c.Err, c.Terminal} {
		if f != nil {
			f.Close()
		}
	}
}
