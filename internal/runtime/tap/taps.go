// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// Suffix is what the names of a tap's fifos have behind those of the runtime's.
const Suffix = ".tap"

// Files beside the runtime's other files of a container.
const (
	ringFile = "output"
	specFile = "tap.json"
)

// ErrNone is returned for containers that were removed before they had any output.
var ErrNone = errors.New("the container is gone: it was never started")

// ErrNotKept is returned for containers whose output is not kept.
var ErrNotKept = errors.New("the earlier output of this container is not kept for clients that attach")

// errGone says that a tap's ring was let go between finding the tap and attaching to it.
var errGone = errors.New("the output has ended")

// Spec is what a tap has to know of its container.
type Spec struct {
	Stdin  string // the runtime's fifos; empty for a stream that the container does not have
	Stdout string
	Stderr string
	Log    string // path; empty: no log
	TTY    bool
	// StdinOnce says that the end of the first client's input is the end of the container's.
	StdinOnce bool
	// FromNow says that the output is not kept for those who attach: it passes through the ring on its way to the log.
	// They are shown the log, if they ask for it, and what it does not have; and they leave with the end of their
	// input, where that is not the container's.
	FromNow bool `json:",omitempty"`
	// Awaited says that the container was made for one client, who is on the way: nothing of the output is let go
	// before it is there, unless it does not come.
	Awaited bool
}

// room is the size of its ring.
func (s Spec) room() int {
	if s.FromNow {
		return passingSize
	}
	return ringSize
}

// outputs are the runtime's fifos of the streams there are.
func (s Spec) outputs() []string {
	if s.TTY {
		return []string{s.Stdout}
	}
	return []string{s.Stdout, s.Stderr}
}

// paths are all fifos of the runtime.
func (s Spec) paths() (out []string) {
	for _, p := range []string{s.Stdin, s.Stdout, s.Stderr} {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

// ours are the fifos the shim gets instead.
func (s Spec) ours() (out []string) {
	if s.Stdin != "" {
		out = append(out, s.Stdin+Suffix)
	}
	for _, p := range s.outputs() {
		out = append(out, p+Suffix)
	}
	return out
}

// Taps are the taps of one runtime.
type Taps struct {
	dir string // has a folder for each container, which the runtime removes with it
	log *slog.Logger

	mu      sync.Mutex
	live    map[string]*tap // whose output has not ended
	changed chan struct{}   // closed when a tap is added

	spare sync.Pool // of the logs' buffers
}

// New makes Taps without any; dir is where the runtime has a folder for each container.
func New(dir string, log *slog.Logger) *Taps {
	return &Taps{dir: dir, log: log, live: map[string]*tap{}, changed: make(chan struct{})}
}

// Start puts a tap on a container that is about to be created. create must hand the shim the fifos with [Suffix]
// instead of the runtime's; when it returns nil the shim has opened them.
func (t *Taps) Start(id string, s Spec, create func() error) error {
	r, err := t.prepare(id, s)
	if err != nil {
		// The container may be started without a tap: no later process is to take this for one.
		_ = t.forget(id, s)
		return fmt.Errorf("keeping the container's output: %w", err)
	}
	p := newTap(id, s, r, t.log, &t.spare)
	p.ended = func() { t.remove(id, p) }
	if err = p.createAndOpen(create); err != nil {
		p.letGo()
		_ = t.forget(id, s)
		return err
	}
	t.add(id, p)
	p.run()
	return nil
}

func (t *tap) createAndOpen(create func() error) error {
	release, err := t.spec.hold()
	if err != nil {
		return err
	}
	defer release()
	if err := t.holdTheirs(); err != nil {
		return err
	}
	if err := t.open(); err != nil { // before: when the process ends at once, the runtime may remove them
		return err
	}
	if err := create(); err != nil {
		closeAll(t.pipes)
		return err
	}
	t.openLog()
	return nil
}

func (t *Taps) prepare(id string, s Spec) (*ring, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if err := s.makeFifos(); err != nil {
		return nil, err
	}
	// Whoever finds it finds it whole; the ring comes last, so that who finds that finds all.
	path := filepath.Join(t.dir, id, specFile)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, err
	}
	return newRing(filepath.Join(t.dir, id, ringFile), s.room())
}

// Recover takes up the taps that a former process left. To be called before the runtime opens its fifos.
func (t *Taps) Recover() {
	found, err := filepath.Glob(filepath.Join(t.dir, "*", specFile))
	if err != nil {
		t.log.Warn("cannot list the containers whose output is kept", "err", err)
	}
	for _, path := range found {
		id := filepath.Base(filepath.Dir(path))
		if err := t.take(id); err != nil {
			t.log.Warn("the output of a container is no longer kept", "container", id, "err", err)
		}
	}
}

func (t *Taps) take(id string) error {
	s, err := t.spec(id)
	if err != nil {
		return err
	}
	path := filepath.Join(t.dir, id, ringFile)
	r, err := openRing(path)
	if err != nil {
		t.log.Warn("the output of a container is kept again from now on", "container", id, "err", err)
		if r, err = newRing(path, s.room()); err != nil {
			return err
		}
	}
	if r.h.ended.Load() != 0 {
		r.close()
		return nil
	}
	if s.Log == "" { // its client was on the way to the process that is gone: what it does not take ends with it
		s.Awaited = false
	}
	p := newTap(id, s, r, t.log, &t.spare)
	p.ended = func() { t.remove(id, p) }
	err = p.holdTheirs()
	if err == nil {
		err = p.open()
	}
	if err == nil {
		err = p.look()
	}
	switch {
	case err == nil:
		p.openLog()
	case errors.Is(err, fs.ErrNotExist): // the process has ended, and a runtime that went on meanwhile removed them
		closeAll(p.pipes)
		p.pipes, p.pumps = nil, 0
		r.h.cut.Store(1)
		p.openLog()
	default:
		closeAll(p.pipes)
		p.letGo()
		return err
	}
	t.add(id, p)
	p.run()
	return nil
}

func (t *Taps) spec(id string) (s Spec, err error) {
	text, err := os.ReadFile(filepath.Join(t.dir, id, specFile))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

func (t *Taps) add(id string, p *tap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live[id] = p
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *Taps) remove(id string, p *tap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[id] == p {
		delete(t.live, id)
	}
}

func (t *Taps) find(id string) (p *tap, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live[id], t.changed
}

// Kept says whether a container's output is kept for those who attach: it has a tap, or had one and is still there.
func (t *Taps) Kept(id string) bool {
	s, ok := t.tapped(id)
	return ok && !s.FromNow
}

// Passes says whether a container's output goes, or went, through a tap that keeps it for nobody (see [Spec.FromNow]):
// clients get the log and what follows.
func (t *Taps) Passes(id string) bool {
	s, ok := t.tapped(id)
	return ok && s.FromNow
}

// tapped is how a container is tapped, or was; false if it never was.
func (t *Taps) tapped(id string) (Spec, bool) {
	if p, _ := t.find(id); p != nil {
		return p.spec, true
	}
	if _, err := os.Stat(filepath.Join(t.dir, id, ringFile)); err != nil {
		return Spec{}, false
	}
	s, err := t.spec(id)
	return s, err == nil
}

// Attach gives a client all output of a container that is kept, then what comes, and hands its input on; of a container
// whose output only passes, the log (Options.Past) and what follows it. It returns nil when there is no more output, or
// with the client's input (see [Spec.FromNow]), ctx.Err() when ctx is done, and otherwise the error of the client's
// streams. It waits for containers whose tap is not there yet, until removed is closed (ErrNone).
func (t *Taps) Attach(ctx context.Context, id string, o Options, shim Shim, removed <-chan struct{}) error {
	for {
		p, changed := t.find(id)
		if p != nil {
			if err := p.attach(ctx, o, shim); !errors.Is(err, errGone) {
				return err
			}
		}
		err := t.replay(ctx, id, o)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-changed:
		case <-removed:
			return ErrNone
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *Taps) replay(ctx context.Context, id string, o Options) error {
	s, err := t.spec(id)
	if err != nil {
		return err
	}
	r, err := readRing(filepath.Join(t.dir, id, ringFile))
	if err != nil {
		return err
	}
	defer r.close()
	if r.h.ended.Load() == 0 {
		return fs.ErrNotExist // it is about to begin
	}
	if s.FromNow {
		return showLog(s.Log, o.Past)
	}
	return replay(ctx, r, o, s.TTY)
}

// showLog shows the log of a container that has ended. One that is not there any more has nothing to show.
func showLog(path string, to func(io.ReaderAt, int64) error) error {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return past{f, info.Size()}.show(to)
}

// ReopenLog opens a container's log anew, after the file was renamed, once the runtime has done so. Nothing is written
// between the two: when the runtime closes the file that was renamed, whoever follows the log takes it for whole.
func (t *Taps) ReopenLog(id string, runtime func() error) error {
	p, _ := t.find(id)
	if p == nil {
		return runtime()
	}
	return p.logs.reopen(runtime)
}

// ProcessEnded is to be called when a container's process has ended: what it still had to say does not wait for ever
// then for a client that takes nothing.
func (t *Taps) ProcessEnded(id string) {
	if p, _ := t.find(id); p != nil {
		p.processEnded()
	}
}

// Stop lets go of all taps. The containers go on.
func (t *Taps) Stop() {
	t.mu.Lock()
	live := make([]*tap, 0, len(t.live))
	for _, p := range t.live {
		live = append(live, p)
	}
	t.mu.Unlock()
	for _, p := range live {
		p.stop()
	}
}
