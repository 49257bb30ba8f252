// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Word is the argument that makes the program a guard.
const Word = "guard-debug-session"

// LockFD is the descriptor by which a guard inherits its session's lock.
const LockFD = 3

// name is that of folders and cgroups of sessions.
const name = "wherry-debug"

// Machine is where sessions are on a machine.
type Machine struct {
	Run     string // the folder of sessions
	Disk    string // the folder that has their images' files below it
	Cgroups string // where cgroups are mounted
}

// Here is this machine.
func Here() Machine { return Machine{Run: "/run/" + name, Disk: "/var/tmp", Cgroups: "/sys/fs/cgroup"} }

// Dir is a session's folder. Others see only its record in it: everything else is mounted in the session's own
// namespace.
func (m Machine) Dir(id string) string { return filepath.Join(m.Run, id) }

// Lock is the file that is locked as long as the session's command or its guard lives.
func (m Machine) Lock(id string) string { return filepath.Join(m.Dir(id), "lock") }

// Record is the file that says what the session is.
func (m Machine) Record(id string) string { return filepath.Join(m.Dir(id), "session.json") }

// DiskDir is a session's folder on disk.
func (m Machine) DiskDir(id string) string { return filepath.Join(m.Disk, name+"-"+id) }

// Cgroup is a session's cgroup, as a path in each hierarchy.
func Cgroup(id string) string { return "/" + name + "/" + id }

// ids matches the IDs of sessions. None can be mistaken for a longer path.
var ids = regexp.MustCompile(`^[0-9a-f]{12}$`)

// IsID reports whether a text can be the name of a session.
func IsID(text string) bool { return ids.MatchString(text) }

// Main is a guard's process. It returns the exit code.
func Main(args []string, in io.Reader, errs io.Writer) int {
	if len(args) != 1 || !ids.MatchString(args[0]) {
		fmt.Fprintln(errs, "this is for wherry's own use")
		return 2
	}
	// Signals are meant for the command; the guard waits for nothing but its end.
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	_, _ = io.Copy(io.Discard, in) // it ends with the other side, by whatever error
	err := Here().Clean(args[0])
	Here().Leave(args[0])
	if err != nil {
		fmt.Fprintln(errs, "wherry debug: what the session has left cannot be removed:", err)
		return 1
	}
	return 0
}

// Make makes a session's folder, not yet locked.
func (m Machine) Make(id string) error {
	if !IsID(id) {
		return fmt.Errorf("%q is not a session's ID: it has 12 hexadecimal digits", id)
	}
	return persist(func() error {
		// The root user of a user namespace must be able to pass through; everything below belongs to root.
		if err := os.MkdirAll(m.Run, 0o711); err != nil {
			return fmt.Errorf("folder of the sessions: %w", err)
		}
		if err := os.Mkdir(m.Dir(id), 0o711); err != nil {
			return fmt.Errorf("folder of the session: %w", err)
		}
		return nil
	})
}

// Clean ends a session's processes and removes what it has left. It can be repeated.
func (m Machine) Clean(id string) error {
	errs := []error{m.End(id)}
	if err := os.RemoveAll(m.DiskDir(id)); err != nil {
		errs = append(errs, err)
	}
	if err := os.RemoveAll(m.Dir(id)); err != nil {
		errs = append(errs, err)
	}
	_ = os.Remove(m.Run) // if it was the last
	return errors.Join(errs...)
}

// Record is what a session's file says of it.
type Record struct {
	ID      string    `json:"id"`
	Target  string    `json:"target"`
	Command []string  `json:"command,omitempty"`
	User    string    `json:"user,omitempty"` // who asked for it, by sudo or by a cluster's API
	PID     int       `json:"pid"`            // of the command that was typed
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero"`

	// Of those that a cluster's API has asked for.
	Pod       *Pod   `json:"pod,omitempty"`
	As        string `json:"as,omitempty"` // shell, exec or files
	Container string `json:"container,omitempty"`
	Image     string `json:"image,omitempty"`
	Profile   string `json:"profile,omitempty"`
}

// Pod is the pod that a session is about.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Sessions are those that live, in the order of their beginning.
func (m Machine) Sessions() ([]Record, error) {
	dirs, err := os.ReadDir(m.Run)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, d := range dirs {
		text, err := os.ReadFile(m.Record(d.Name()))
		var r Record
		if err != nil || json.Unmarshal(text, &r) != nil || r.ID != d.Name() || !ids.MatchString(r.ID) {
			continue // it is just being made, or taken away
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Record) int { return a.Since.Compare(b.Since) })
	return all, nil
}

// Sweep cleans what sessions have left that nobody looks after any more.
func (m Machine) Sweep() error {
	dirs, err := os.ReadDir(m.Run)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range dirs {
		if ids.MatchString(d.Name()) && m.forsaken(d.Name()) {
			errs = append(errs, m.Clean(d.Name()))
		}
	}
	return errors.Join(errs...)
}

// makingTime is how long a session may take to have its lock, which is a matter of microseconds.
const makingTime = time.Minute

// forsaken reports whether neither command nor guard of a session lives. One that is just being made has no lock yet:
// it is left alone.
func (m Machine) forsaken(id string) bool {
	f, err := os.OpenFile(m.Lock(id), os.O_RDWR, 0)
	if err != nil {
		info, serr := os.Stat(m.Dir(id))
		return errors.Is(err, fs.ErrNotExist) && serr == nil && time.Since(info.ModTime()) > makingTime
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
