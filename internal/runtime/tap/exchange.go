// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// exchangeFile is beside a container's other files while its fifos are exchanged: the inodes that belong to the
// runtime's names.
const exchangeFile = "tap.exchange"

// StartExchanged is [Taps.Start] for a runtime that cannot be made to hand the shim other fifos than its own: while
// start runs, the tap's fifos have the names of the runtime's. The runtime has opened its own before, and later finds
// them by their names again. start returns nil when the shim has opened what it was given, and an error if there is no
// shim.
func (t *Taps) StartExchanged(id string, s Spec, start func() error) error {
	return t.Start(id, s, func() error {
		if err := t.noteExchange(id, s); err != nil {
			return fmt.Errorf("keeping the container's output: %w", err)
		}
		err := exchange(s.paths())
		if err != nil {
			err = fmt.Errorf("keeping the container's output: %w", err)
		} else {
			err = start()
		}
		if back := t.restoreNames(id, s); back != nil { // what was started goes on: its fifos are open
			t.log.Warn("cannot restore the names of fifos", "container", id, "err", back)
		}
		return err
	})
}

// exchange swaps each of the runtime's fifos with the tap's.
func exchange(paths []string) error {
	for _, p := range paths {
		if err := unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, p+Suffix, unix.RENAME_EXCHANGE); err != nil {
			return fmt.Errorf("exchanging %s: %w", p, err)
		}
	}
	return nil
}

func (t *Taps) noteExchange(id string, s Spec) error {
	inodes := map[string]uint64{}
	for _, p := range s.paths() {
		n, err := inode(p)
		if err != nil {
			return err
		}
		inodes[p] = n
	}
	text, err := json.Marshal(inodes)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.dir, id, exchangeFile), text, 0o600)
}

func inode(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return st.Ino, nil
}

// restoreNames gives the fifos of a container their names back, whichever of them were exchanged.
func (t *Taps) restoreNames(id string, s Spec) error {
	note := filepath.Join(t.dir, id, exchangeFile)
	text, err := os.ReadFile(note)
	if err != nil {
		return err
	}
	inodes := map[string]uint64{}
	if err := json.Unmarshal(text, &inodes); err != nil { // cut short by a kill: nothing was exchanged yet
		return os.Remove(note)
	}
	for _, p := range s.paths() {
		now, err := inode(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the process has ended meanwhile, and the runtime removed them
		}
		if err != nil {
			return err
		}
		if want, noted := inodes[p]; noted && now != want {
			if err := exchange([]string{p}); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return os.Remove(note)
}

// RecoverExchanged is [Taps.Recover] for taps of [Taps.StartExchanged]. started reports whether a container has been
// started; one whose start was cut short by the end of the former process may not have been, and then is as if nobody
// had tried.
func (t *Taps) RecoverExchanged(started func(id string) bool) {
	notes, err := filepath.Glob(filepath.Join(t.dir, "*", exchangeFile))
	if err != nil {
		t.log.Warn("cannot list the containers whose output is kept", "err", err)
	}
	for _, note := range notes {
		id := filepath.Base(filepath.Dir(note))
		was := started(id) // asked first: what is started after the names are right has the runtime's fifos
		s, err := t.spec(id)
		if err == nil {
			err = t.restoreNames(id, s)
		}
		if err == nil && !was {
			err = t.forget(id, s)
		}
		if err != nil {
			t.log.Warn("the output of a container is no longer kept", "container", id, "err", err)
		}
	}
	t.Recover()
}

// forget takes away what a tap has beside a container.
func (t *Taps) forget(id string, s Spec) error {
	s.removeFifos()
	var errs []error
	for _, name := range []string{ringFile, specFile} {
		if err := os.Remove(filepath.Join(t.dir, id, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Live are the containers whose output has not ended.
func (t *Taps) Live() (ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.live {
		ids = append(ids, id)
	}
	return ids
}
