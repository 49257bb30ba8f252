// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/signal"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// request is what the test asks of the child, and answer what it says.
type request struct {
	Op     string `json:"op"`
	Dir    string `json:"dir,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`
	Power  bool   `json:"power,omitempty"`
	Loss   Loss   `json:"loss,omitempty"`
	Faults Faults `json:"faults,omitzero"`
}

type answer struct {
	Err    string         `json:"err,omitempty"`
	Counts map[string]int `json:"counts,omitempty"`
}

// child serves one disk at a time.
type child struct {
	dir    string
	fs     *filesystem // nil: nothing is mounted
	counts map[string]int
}

// Child serves a disk for the process at the other end of in and out, until in ends. Nothing stays mounted.
func Child(in io.Reader, out io.Writer) error {
	signal.Ignore(unix.SIGINT, unix.SIGTERM) // whoever interrupts the test means the test; its end is in's
	c := &child{counts: map[string]int{}}
	defer c.unmount()
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var a answer
		if err := c.do(r); err != nil {
			a.Err = err.Error()
		}
		if r.Op == "unmount" { // how often the kernel reads is its own affair, of which a world must not hear
			a.Counts = c.counts
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

func (c *child) do(r request) error {
	switch r.Op {
	case "mount":
		c.unmount()
		return c.mount(r.Dir, newState())
	case "remount":
		if c.fs == nil || c.fs.next == nil {
			return errors.New("it has not been cut")
		}
		next := c.fs.next
		c.unmount()
		return c.mount(c.dir, next)
	case "unmount":
		c.unmount()
		return nil
	}
	if c.fs == nil {
		return errors.New("nothing is mounted")
	}
	c.fs.mu.Lock()
	defer c.fs.mu.Unlock()
	switch r.Op {
	case "cut":
		c.cut(r)
	case "faults":
		c.fs.trouble = trouble{Faults: r.Faults, rng: rand.New(rand.NewPCG(r.Seed, 2))}
	case "settle":
		c.fs.s.settle()
	default:
		return fmt.Errorf("nobody knows what %q is", r.Op)
	}
	return nil
}

// cut ends what uses the disk. What has ended already can still lose its power.
func (c *child) cut(r request) {
	s := c.fs.s
	if c.fs.next != nil {
		s = c.fs.next
	}
	if r.Power {
		c.fs.next = s.powerless(r.Loss, rand.New(rand.NewPCG(r.Seed, 1)))
	} else {
		c.fs.next = s.killed()
	}
	c.fs.trouble = trouble{}
}

func (c *child) mount(dir string, s *state) error {
	fs := newFilesystem(s)
	server, err := fuse.NewServer(fs, dir, &fuse.MountOptions{
		Name: "wherry-disk", FsName: "simulated", DirectMountStrict: true, DisableXAttrs: true,
		ExplicitDataCacheControl: true, DisableSplice: true, DisableReadDirPlus: true, MaxWrite: 1 << 20,
	})
	if err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	go server.Serve()
	c.dir, c.fs = dir, fs
	return server.WaitMount()
}

func (c *child) unmount() {
	if c.fs == nil {
		return
	}
	// Whoever has a file open still sees the old mount, until it is closed.
	_ = unix.Unmount(c.dir, unix.MNT_DETACH)
	c.fs.mu.Lock()
	for op, n := range c.fs.counts {
		c.counts[op] += n
	}
	c.fs.mu.Unlock()
	c.fs = nil
}
