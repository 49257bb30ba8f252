// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

// ChildWord is the only argument with which the test program has to call [Child].
const ChildWord = "simulated-disk"

// Disk is a disk that another process serves. Its methods are safe for concurrent use.
type Disk struct {
	mu      sync.Mutex
	process *exec.Cmd
	in      io.WriteCloser
	answers io.Closer
	out     *json.Decoder // of the answers
}

// Start starts the process that serves a disk: this program, with [ChildWord]. Its words go to stderr.
func Start(stderr io.Writer) (*Disk, error) {
	if err := usable(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	requests, answers, err := pipes()
	if err != nil {
		return nil, err
	}
	defer requests.reader.Close() // which are the child's
	defer answers.writer.Close()
	d := &Disk{process: exec.Command(self, ChildWord), in: requests.writer, out: json.NewDecoder(answers.reader)}
	d.answers = answers.reader
	// a program that is to run alike each time has no garbage collected
	d.process.Env = append(os.Environ(), "GOGC=100")
	d.process.Stdin, d.process.Stdout, d.process.Stderr = requests.reader, answers.writer, stderr
	if err := d.process.Start(); err != nil {
		return nil, fmt.Errorf("start the disk: %w", errors.Join(err, d.in.Close(), d.answers.Close()))
	}
	return d, nil
}

type pipe struct{ reader, writer *os.File }

// pipes makes the two to the child. They block in the kernel, not in Go, where whether an answer is there already would
// decide who runs next: a world must not depend on how quick the child is.
func pipes() (requests, answers pipe, err error) {
	if requests, err = newPipe("requests"); err != nil {
		return requests, answers, err
	}
	if answers, err = newPipe("answers"); err != nil {
		return requests, answers, errors.Join(err, requests.reader.Close(), requests.writer.Close())
	}
	return requests, answers, nil
}

func newPipe(name string) (pipe, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return pipe{}, fmt.Errorf("make a pipe to the disk: %w", err)
	}
	return pipe{os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name)}, nil
}

// usable says why no disk can be mounted here.
func usable() error {
	if os.Geteuid() != 0 {
		return errors.New("mounting a disk needs root")
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("mounting a disk needs FUSE: %w", err)
	}
	return f.Close()
}

func (d *Disk) ask(r request) (a answer, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := json.NewEncoder(d.in).Encode(r); err != nil {
		return a, fmt.Errorf("disk: %s: %w", r.Op, err)
	}
	if err := d.out.Decode(&a); err != nil {
		return a, fmt.Errorf("disk: %s: %w", r.Op, err)
	}
	if a.Err != "" {
		return a, fmt.Errorf("disk: %s: %s", r.Op, a.Err)
	}
	return a, nil
}

func (d *Disk) tell(r request) error {
	_, err := d.ask(r)
	return err
}

// Mount mounts an empty disk on a folder.
func (d *Disk) Mount(dir string) error { return d.tell(request{Op: "mount", Dir: dir}) }

// Unmount takes the disk away.
func (d *Disk) Unmount() error { return d.tell(request{Op: "unmount"}) }

// Kill ends whatever uses the disk, as kill -9 does: the next process finds everything that it had written until now.
func (d *Disk) Kill() error { return d.tell(request{Op: "cut"}) }

// PowerOff ends the machine: the next one finds what was synced, and of the rest what the loss leaves, by a seed.
func (d *Disk) PowerOff(loss Loss, seed uint64) error {
	return d.tell(request{Op: "cut", Power: true, Loss: loss, Seed: seed})
}

// Remount shows the disk as the next process or machine finds it, after [Disk.Kill] or [Disk.PowerOff].
func (d *Disk) Remount() error { return d.tell(request{Op: "remount"}) }

// Fail makes the disk fail from now on as f says, until the disk is cut or this is called again. What is by chance
// follows the seed.
func (d *Disk) Fail(f Faults, seed uint64) error {
	return d.tell(request{Op: "faults", Faults: f, Seed: seed})
}

// Settle has everything written to the platter, as the kernel does sooner or later.
func (d *Disk) Settle() error { return d.tell(request{Op: "settle"}) }

// Counts are how many operations of each kind were served, up to the last unmount.
func (d *Disk) Counts() (map[string]int, error) {
	a, err := d.ask(request{Op: "unmount"})
	return a.Counts, err
}

// Close unmounts the disk and ends its process.
func (d *Disk) Close() error {
	return errors.Join(d.in.Close(), d.process.Wait(), d.answers.Close())
}
