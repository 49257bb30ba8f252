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

	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
	"github.com/wherryproject/wherry/internal/hostdebug/ocispec"
	"github.com/wherryproject/wherry/internal/mountfd"
)

// Image is a root filesystem for the debugger.
type Image interface {
	// Unpack writes the image's files into an empty folder, and says what runs from it.
	Unpack(ctx context.Context, dir string) (ocispec.Image, error)
}

// Request says which debugger to run.
type Request struct {
	// Target is what is debugged: its namespaces are joined. It may be nil where there is a Keeper.
	Target *engines.Container
	// Beside are containers whose files are shown too, each under /c/<name>, writable if the target's are. Of those
	// that do not run the last files are shown, always read-only. If one cannot be shown, that is a note, not an error.
	Beside []*engines.Container
	// Keeper is the process that holds the namespaces of their pod, as the pause container does; 0: there is none. The
	// session ends with it, and is in its network where no process of a target is joined.
	Keeper int
	// KeeperName is the container whose process the Keeper is, where the pod has none of its own.
	KeeperName string
	// Recheck confirms, once the processes are held, that they are still those that were found; nil: they are.
	Recheck func(ctx context.Context) error

	ID     string       // 12 hexadecimal digits; empty: one is made up
	Record guard.Record // what is recorded of the session besides what Run knows

	Tools Tools
	// Kit is a mount that is used for nothing else, with the unpacked tools under the names KitRunc and KitToolbox;
	// nil: they are unpacked for this session.
	Kit *os.File

	Image    Image // nil: the built-in toolbox
	Bounded  bool  // what is written into the image's files is kept in memory, and not more than fits there
	Options  ocispec.Options
	Writable bool          // the target's files
	TTL      time.Duration // of the command, once it runs; 0: as long as it takes
	Within   time.Duration // the command is to run, with all that comes before it; 0: as long as it takes
	Note     func(string)  // is called with what the user should know; may be nil
	Self     string        // the program that guards: wherry
	Errors   *os.File      // where the guard says what it cannot remove; nil: nowhere
}

// Streams are those of the debugger. If it has a terminal, In is one.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Ended is the error of a session that was ended before its command.
type Ended struct{ Why string }

func (e *Ended) Error() string { return "the session has ended: " + e.Why }

// session is one debug session.
type session struct {
	req       Request
	id        string
	machine   guard.Machine
	lock      *os.File
	held      *held // of the target; nil: there is no process
	keeper    *held // nil: there is none
	beside    []neighbour
	rechecked func() error // the answer of Recheck; nothing of the target is shown before it
	since     time.Time
	ready     func() // ends the limit of Within: the command runs

	closePipe func() error // makes the guard clean up
	guarded   chan error   // how the guard has ended
}

// Run runs a debugger and returns its command's exit code. Nothing of it is left when it returns.
func Run(ctx context.Context, req Request, streams Streams) (code int, err error) {
	if !mountfd.KernelCan() {
		return 0, errors.New("this kernel is too old: debugging on the machine takes Linux 5.12")
	}
	if os.Geteuid() != 0 {
		return 0, errors.New("debugging containers of this machine needs root: run it with sudo")
	}
	s := &session{req: req, machine: guard.Here(), since: time.Now().UTC()}
	// Before others see the session: whoever stops it signals this process, even while it starts.
	ctx, stopListening := untilSignal(ctx)
	defer stopListening()
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
		return known, why // the error is only a consequence
	}
	return code, err
}

// run makes what the debugger needs, and runs it.
func (s *session) run(ctx context.Context, streams Streams) (int, error) {
	defer s.releaseAll()
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
func (s *session) begin() error {
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
func (s *session) watch() error {
	// The file is locked before it gets its name: a lock that nobody holds means that its session is over.
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
	s.closePipe = sync.OnceValue(w.Close)
	s.guarded = make(chan error, 1)
	go func() { s.guarded <- cmd.Wait() }()
	return nil
}

// record writes what the session is, for others to see: its time limit counts from a time.
func (s *session) record(from time.Time) error {
	r := s.req.Record
	r.ID, r.Command, r.PID, r.Since = s.id, s.req.Options.Command, os.Getpid(), s.since
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
	return os.Rename(path+".new", path) // so that there is a complete record at every moment
}

// begun is called when the command runs: its time limit counts from then on.
func (s *session) begun() {
	s.ready()
	written := make(chan error)
	go func() { written <- s.record(time.Now().UTC()) }() // this thread does not see the machine's own folder
	if err := <-written; err != nil {
		s.note("record of the session: " + err.Error())
	}
}

// end lets the guard clean up, and waits for it.
func (s *session) end() error {
	_ = s.closePipe() // the guard sees the pipe's end, whatever Close says
	err := <-s.guarded
	_ = s.lock.Close()
	if err != nil { // it was killed, perhaps
		return s.machine.Clean(s.id)
	}
	return nil
}

func (s *session) note(text string) {
	if s.req.Note != nil {
		s.req.Note(text)
	}
}

// inPrivate prepares and runs the debugger in a mount namespace of the session's own.
func (s *session) inPrivate(ctx context.Context, streams Streams) (int, error) {
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
	if err := s.rechecked(); err != nil {
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
	// Unmounts on the machine reach the session, and mounts of the session do not reach the machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("a mount namespace for the session: %w", err)
	}
	if err := unix.Mount("wherry-debug", at, "tmpfs", unix.MS_NOSUID, "mode=0711,size="+treeSize); err != nil {
		return fmt.Errorf("a file system for the session: %w", err)
	}
	return nil
}
