// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/runtime/bundle"
	ownshim "github.com/wherryproject/wherry/internal/shim"
)

// cniResults is where libcni keeps results; the path is fixed in it.
const cniResults = "/var/lib/cni/results"

// Purge ends every container that runs from a data folder, at once, and unmounts everything below it, so that the
// folder can be deleted. It does not ask a runtime and works also when its databases are damaged; no runtime may run on
// the folder meanwhile (ErrInUse). The pod network's devices and rules are not its business, see Config.Network. A
// folder without a runtime is left as it is.
func Purge(ctx context.Context, dataDir string) error {
	d := dirsOf(filepath.Clean(dataDir))
	if _, err := os.Stat(filepath.Dir(d.root)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := d.lock()
	if err != nil {
		return fmt.Errorf("purge %s: %w", dataDir, err)
	}
	defer lock.Close()
	// Shims first: nothing then reacts to the containers' ends, and no event finds a listener.
	shims, err := killShims(d, func([]string) bool { return true })
	if err != nil {
		return fmt.Errorf("purge %s: %w", dataDir, err)
	}
	errs := []error{
		awaitGone(ctx, shims),
		cleanSandboxes(d),
		deleteContainers(ctx, d),
		unmountBelow(d.data),
		removeResults(d),
	}
	if d.link != "" {
		if err := os.Remove(d.link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		_ = os.Remove(linkRoot) // if it is empty now
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("purge %s: %w", dataDir, err)
	}
	return nil
}

// killShims kills the shims of a data folder that have such a command line, whichever program they run, and returns
// their process file descriptors.
func killShims(d dirs, which func(args []string) bool) ([]int, error) {
	var fds []int
	for _, program := range []string{bundle.Serve, bundle.Stock} {
		some, err := killByExecutable(filepath.Join(d.bin, program), which)
		fds = append(fds, some...)
		if err != nil {
			return fds, err
		}
	}
	return fds, nil
}

// killByExecutable kills the processes that run a program, also when the file was replaced since, with such a command
// line, and returns their process file descriptors.
func killByExecutable(path string, which func(args []string) bool) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var fds []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// The descriptor is taken before the look, so that the process looked at is the one that is killed.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		exe, err := os.Readlink("/proc/" + e.Name() + "/exe")
		if err != nil || strings.TrimSuffix(exe, " (deleted)") != path {
			unix.Close(fd)
			continue
		}
		// Only now: for another process this may wait, as for one that waits itself for a file system which does not
		// answer.
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline") // an error says that it has ended
		if !which(strings.Split(string(line), "\x00")) {
			unix.Close(fd)
			continue
		}
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		fds = append(fds, fd)
	}
	return fds, nil
}

// goneTime is how long killed processes are waited for: one that waits for a disk does not end before that answers.
const goneTime = 30 * time.Second

// awaitGone waits until processes have ended, and closes their descriptors.
func awaitGone(ctx context.Context, fds []int) error {
	ctx, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	var err error
	for _, fd := range fds {
		for err == nil {
			n, pollErr := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 50)
			if n > 0 {
				break
			}
			if pollErr != nil && !errors.Is(pollErr, unix.EINTR) {
				err = pollErr
			} else if ctx.Err() != nil {
				err = fmt.Errorf("waiting for a shim to end: %w", context.Cause(ctx))
			}
		}
		unix.Close(fd)
	}
	return err
}

// cleanSandboxes removes what pods without a pause container have besides their containers.
func cleanSandboxes(d dirs) error {
	bundles, err := filepath.Glob(filepath.Join(d.run, taskPlugin, Namespace, "*", "config.json"))
	errs := []error{err}
	for _, b := range bundles {
		if err := ownshim.CleanSandbox(filepath.Dir(b)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// deleteContainers kills and deletes all containers runc knows of: processes and cgroups.
func deleteContainers(ctx context.Context, d dirs) error {
	root := filepath.Join(d.runc, Namespace)
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) || len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if err := bundle.Embedded().Unpack(d.bin); err != nil {
		return err
	}
	var (
		mu   sync.Mutex
		errs []error
		g    errgroup.Group
	)
	g.SetLimit(8)
	for _, e := range entries {
		g.Go(func() error {
			if err := deleteContainer(ctx, d, root, e.Name()); err != nil {
				// A damaged record would be in the way the next time too. The processes are found by their cgroups.
				err = errors.Join(err, os.RemoveAll(filepath.Join(root, e.Name())))
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

func deleteContainer(ctx context.Context, d dirs, root, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, bundle.Runc), "--root", root, "delete", "--force", id)
	cmd.WaitDelay = time.Second // whatever else has its output
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("container %s: runc delete: %w: %s", id, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// removeResults removes what libcni remembers of this folder's sandboxes.
func removeResults(d dirs) error {
	sandboxes, err := d.sandboxes()
	errs := []error{err}
	for _, id := range sandboxes {
		files, err := filepath.Glob(filepath.Join(cniResults, "*-"+id+"-*"))
		if err != nil {
			errs = append(errs, err)
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
