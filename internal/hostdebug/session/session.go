// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/hostdebug/box"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
	"github.com/wherryproject/wherry/internal/mountfd"
)

// Image is a root filesystem for the debugger.
type Image interface {
	// Unpack writes the image's files into an empty folder, and says what runs from it.
	Unpack(ctx context.Context, dir string) (box.Image, error)
}

// Request is a debugger that is asked for.
type Request struct {
	// Target is what is debugged: its namespaces are joined. It may be nil where there is a Keeper.
	Target *engines.Container
	// Beside are shown too, each under /c/<name>, writable as the target is; those that do not run by their last files,
	// read-only always. One that cannot be shown is a note, not an error.
	Beside []*engines.Container
	// Keeper is the process that stands for the pod of all of them; 0: there is none. Its end ends the session, and
	// where no process of a target is joined the session is in its network.
	Keeper int
	// KeeperName is the container whose process the Keeper is, where the pod has none of its own.
	KeeperName string
	// Again is asked once the processes are held whether they are still the ones that were found; nil: they are.
	Again func(ctx context.Context) error

	ID     string       // 12 hexadecimal digits; empty: one is made up
	Record guard.Record // what there is to say of it beside what Run knows

	Tools Tools
	// Kit is a mount of which nobody has another use, in which the tools are ready under the names of KitRunc and
	// KitToolbox; nil: they are unpacked.
	Kit *os.File

	Image    Image // nil: the built-in toolbox
	Bounded  bool  // what is written into the image's files is kept in memory, and not more than fits there
	Wish     box.Wish
	Writable bool          // the target's files
	TTL      time.Duration // of the command, once it runs; 0: as long as it takes
	Within   time.Duration // the command is to run, with all that comes before it; 0: as long as it takes
	Note     func(string)  // is called with what the user should know; may be nil
	Self     string        // the program that guards: wherry
	Errors   *os.File      // where the guard says what it cannot remove; nil: nowhere
}

// Streams are the debugger's. With a terminal, In is one.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Ended is the error of a session that was ended before its command.
type Ended struct{ Why string }

func (e *Ended) Error() string { return "the session has ended: " + e.Why }

// one is a session.
type one struct {
	req     Request
	id      string
	machine guard.Machine
	lock    *os.File
	held    *held // of the target; nil: there is no process
	keeper  *held // nil: there is none
	beside  []neighbour
	again   func() error // the answer to Again; nothing of the target is shown before it
	since   time.Time
	ready   func() // the command runs: nothing that comes before it can be late any more

	hangUp  func() error // lets the guard go
	guarded chan error   // says how it has ended
}

// Run runs a debugger and returns its command's exit code. Nothing of it is left when it returns.
func Run(ctx context.Context, req Request, streams Streams) (code int, err error) {
	if !mountfd.KernelCan() {
		return 0, errors.New("this kernel is too old: debugging on the machine takes Linux 5.12")
	}
	if os.Geteuid() != 0 {
		return 0, errors.New("debugging containers of this machine needs root: run it with sudo")
	}
	s := &one{req: req, machine: guard.Here(), since: time.Now().UTC()}
	// before others see the session: whoever stops it signals this process, also in its start
	ctx, deaf := untilSignal(ctx)
	defer deaf()
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer func() {
		if cerr := s.end(); err == nil && cerr != nil {
			err = cerr
		}
	}()
	ctx, s.ready = prepared(ctx, req.Within)
	defer s.ready()
	code, err = s.run(ctx, streams)
	if by := s.machine.StoppedBy(s.id); by != "" {
		return killed, &Ended{"it was stopped by " + by}
	}
	if known, why := calledOff(ctx); why != nil && err != nil && !errors.As(err, new(*Ended)) {
		return known, why // what it has failed by is but that
	}
	return code, err
}

// run makes what the debugger needs, and runs it.
func (s *one) run(ctx context.Context, streams Streams) (int, error) {
	defer s.letGo()
	if err := s.holdAll(ctx); err != nil {
		return 0, err
	}
	type outcome struct {
		code int
		err  error
	}
	done := make(chan outcome)
	go func() {
		// This thread has a mount namespace of its own, and what it starts has it too. It ends with this function.
		runtime.LockOSThread()
		code, err := s.inPrivate(ctx, streams)
		done <- outcome{code, err}
	}()
	o := <-done
	return o.code, o.err
}

// begin names the session and starts its guard.
func (s *one) begin() error {
	if err := s.machine.Sweep(); err != nil {
		s.note("what an earlier session has left cannot be removed: " + err.Error())
	}
	if s.id = s.req.ID; s.id == "" {
		s.id = newID()
	}
	if err := s.machine.Make(s.id); err != nil {
		return err
	}
	if err := s.watch(); err != nil {
		return errors.Join(err, s.machine.Clean(s.id))
	}
	if err := s.record(s.since); err != nil {
		return errors.Join(fmt.Errorf("record of the session: %w", err), s.end())
	}
	return nil
}

func newID() string {
	var id [6]byte
	_, _ = rand.Read(id[:]) // it never fails
	return hex.EncodeToString(id[:])
}

// watch locks the session and starts its guard, which holds the lock too.
func (s *one) watch() error {
	// It has its name when it is locked: one that nobody holds is taken for that of a session which is over.
	path := s.machine.Lock(s.id)
	var err error
	if s.lock, err = os.OpenFile(path+".new", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("lock of the session: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(s.req.Self, guard.Word, s.id)
	cmd.Stdin, cmd.Stderr, cmd.ExtraFiles = r, s.req.Errors, []*os.File{s.lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return fmt.Errorf("start the session's guard: %w", err)
	}
	s.hangUp = sync.OnceValue(w.Close)
	s.guarded = make(chan error, 1)
	go func() { s.guarded <- cmd.Wait() }()
	return nil
}

// record writes what the session is, for others to see: its time limit counts from a time.
func (s *one) record(from time.Time) error {
	r := s.req.Record
	r.ID, r.Command, r.PID, r.Since = s.id, s.req.Wish.Command, os.Getpid(), s.since
	if s.req.Target != nil {
		r.Target = s.req.Target.Target.String()
	}
	if r.User == "" {
		r.User = os.Getenv("SUDO_USER")
	}
	if s.req.TTL > 0 {
		r.Until = from.Add(s.req.TTL)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := s.machine.Record(s.id)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path) // there is no moment at which it is not on record
}

// begun is for the moment at which the command runs, from which its time limit counts.
func (s *one) begun() {
	s.ready()
	written := make(chan error)
	go func() { written <- s.record(time.Now().UTC()) }() // this thread does not see the machine's own folder
	if err := <-written; err != nil {
		s.note("record of the session: " + err.Error())
	}
}

// end lets the guard take away what there is, and waits for it.
func (s *one) end() error {
	_ = s.hangUp() // the guard sees the pipe's end, whatever Close says
	err := <-s.guarded
	_ = s.lock.Close()
	if err != nil { // it was killed, perhaps
		return s.machine.Clean(s.id)
	}
	return nil
}

func (s *one) note(text string) {
	if s.req.Note != nil {
		s.req.Note(text)
	}
}

// inPrivate does what is done in the session's own mount namespace.
func (s *one) inPrivate(ctx context.Context, streams Streams) (int, error) {
	base := s.machine.Dir(s.id)
	if err := privateMounts(base); err != nil {
		return 0, err
	}
	uid, gid := 0, 0
	if in := s.joined(); in != nil {
		var err error
		if uid, gid, err = in.rootUser(); err != nil {
			return 0, err
		}
	}
	at, fs, img, err := s.prepare(ctx, base)
	if err != nil {
		return 0, err
	}
	if err := s.again(); err != nil {
		return 0, err
	}
	files := filepath.Join(base, "files")
	first, err := s.showAll(ctx, files, uid, gid)
	if err != nil {
		return 0, err
	}
	if err := folders(fs.made); err != nil {
		return 0, err
	}
	if first != "" {
		if err := takeOver(ctx, filepath.Join(files, first), fs.made); err != nil {
			return 0, err
		}
	}
	if err := s.present(fs, uid, gid); err != nil {
		return 0, err
	}
	return s.exec(ctx, at, fs.seen, files, img, streams)
}

// treeSize bounds a session's memory file system: the programs, and what its shell writes.
const treeSize = "512m"

// privateMounts gives this thread a mount namespace of its own with a memory file system at a folder.
func privateMounts(at string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return fmt.Errorf("a mount namespace for the session: %w", err)
	}
	// What is unmounted on the machine is not kept by a session, and nothing of a session comes to the machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("a mount namespace for the session: %w", err)
	}
	if err := unix.Mount("wherry-debug", at, "tmpfs", unix.MS_NOSUID, "mode=0711,size="+treeSize); err != nil {
		return fmt.Errorf("a file system for the session: %w", err)
	}
	return nil
}
