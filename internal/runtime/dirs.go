// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wherryproject/wherry/internal/filelock"
)

// maxSocketDir is how long a folder for shim sockets may be: containerd puts a name of 64 hex digits into it, and a
// unix socket's address has 106 usable bytes.
const maxSocketDir = 106 - 1 - 64

// linkRoot holds the short names of data folders whose own path is too long for unix sockets.
const linkRoot = "/run/wherry"

// dirs says where everything of a data folder lies.
type dirs struct {
	data string
	bin  string // helper programs
	root string // containerd's lasting state: images, snapshots, metadata
	run  string // state that means nothing after a reboot: bundles, namespaces, fifos
	runc string // runc's own state
	cni  string // network configuration for containerd
	link string // short name for run, or empty if run is short enough itself
}

func dirsOf(dataDir string) dirs {
	d := dirs{
		data: dataDir,
		bin:  filepath.Join(dataDir, "bin"),
		root: filepath.Join(dataDir, "runtime", "root"),
		run:  filepath.Join(dataDir, "runtime", "run"),
		cni:  filepath.Join(dataDir, "runtime", "cni"),
	}
	d.runc = filepath.Join(d.run, "runc")
	if len(filepath.Join(d.run, "s")) > maxSocketDir {
		sum := sha256.Sum256([]byte(dataDir))
		d.link = filepath.Join(linkRoot, fmt.Sprintf("%x", sum[:6]))
	}
	return d
}

// short is the name of run that is short enough for sockets.
func (d dirs) short() string {
	if d.link != "" {
		return d.link
	}
	return d.run
}

func (d dirs) sockets() string     { return filepath.Join(d.short(), "s") }
func (d dirs) eventSocket() string { return filepath.Join(d.short(), "events.sock") }

// tasks holds a working folder for each task; none of them means anything without the task.
func (d dirs) tasks() string { return filepath.Join(d.root, taskPlugin) }

// containerRecords is where the CRI keeps its records of a container, and we our note of its end.
func (d dirs) containerRecords(id string) string {
	return filepath.Join(d.root, criPlugin, "containers", id)
}

// shimAddress is the name by which shims distinguish data folders. Nothing listens there.
func (d dirs) shimAddress() string { return filepath.Join(d.run, "containerd.sock") }

// workMounts is where containerd mounts what it works on.
func (d dirs) workMounts() string { return filepath.Join(d.root, "tmpmounts") }

// ErrInUse is returned when another process runs a container runtime on the data folder.
var ErrInUse = errors.New("a container runtime is already using this data folder: stop that wherry first, or use another --data-dir")

// lock makes this process the only one to work on the folder. The lock ends with the process, or by closing the file.
func (d dirs) lock() (*os.File, error) {
	if err := os.MkdirAll(d.data, 0o755); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	dir := filepath.Dir(d.root)
	// 0711 and not 0700: processes in user namespaces must be able to reach their mounts through it.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	err = filelock.Take(f, filelock.Patience, filelock.Nobody)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%s: %w", d.data, ErrInUse)
	}
	return nil, fmt.Errorf("lock of %s: %w", d.data, err)
}

// prepare makes the folders, after throwing away what a former boot of the machine left in run.
func (d dirs) prepare(bootID string) error {
	mark := filepath.Join(d.run, "boot-id")
	old, err := os.ReadFile(mark)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("runtime state: %w", err)
	}
	// at first, or it was removed
	if _, lerr := os.Lstat(filepath.Join(d.run, taskPlugin)); errors.Is(lerr, fs.ErrNotExist) {
		if err := os.RemoveAll(d.tasks()); err != nil {
			return fmt.Errorf("state of lost containers: %w", err)
		}
	}
	marked := err == nil && strings.TrimSpace(string(old)) == bootID
	if err == nil && !marked {
		// containerd clears the working folders of tasks that are gone, but only where it finds what is in run.
		if err := errors.Join(os.RemoveAll(d.tasks()), emptyBut(d.run, mark)); err != nil {
			return fmt.Errorf("runtime state of the previous boot: %w", err)
		}
	}
	if err := os.MkdirAll(d.run, 0o711); err != nil { // as lock says
		return fmt.Errorf("runtime folder: %w", err)
	}
	for _, dir := range []string{d.root, d.runc, d.cni, filepath.Join(d.run, "s")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("runtime folder: %w", err)
		}
	}
	if d.link != "" {
		if err := d.makeLink(); err != nil {
			return fmt.Errorf("short link to %s: %w", d.run, err)
		}
	}
	if marked {
		return nil
	}
	return writeMark(mark, bootID)
}

// emptyBut removes what is in a folder, but for one file. The mark of the previous boot stays until nothing else of
// that boot is there, so that a start which is cut off is made up for by the next.
func emptyBut(dir, file string) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); path != file {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

// writeMark writes which boot run is of, once for each boot, and in one step: half a mark would be taken for that of
// another boot, and the state of running containers be thrown away.
func writeMark(mark, bootID string) error {
	next := mark + ".new"
	if err := os.WriteFile(next, []byte(bootID+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, mark)
}

func (d dirs) makeLink() error {
	if to, err := os.Readlink(d.link); err == nil && to == d.run {
		return nil
	}
	if err := os.MkdirAll(linkRoot, 0o700); err != nil {
		return err
	}
	if err := os.Remove(d.link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(d.run, d.link)
}

// bootID identifies a boot of the machine.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("cannot tell whether the machine was rebooted: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
