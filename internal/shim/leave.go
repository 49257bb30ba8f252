// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/go-runc"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func writeFile(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }

// markGone notes in a bundle that nothing is left of its container, with the answer for whoever asks to clean it up.
func markGone(bundle string, answer *taskapi.DeleteResponse) error {
	data, err := proto.Marshal(answer)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(bundle, goneFile), data)
}

// Clean ends and removes what is left of a task whose shim is gone, in the bundle that is the working folder, and
// gives containerd's answer to it.
func Clean(ctx context.Context, id string) ([]byte, error) {
	bundle, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	answer := &taskapi.DeleteResponse{ExitStatus: 128 + uint32(deathSignal)}
	var errs []error
	if pid, err := runc.ReadPidFile(filepath.Join(bundle, pidFile)); err == nil {
		answer.Pid = uint32(pid)
	}
	if s, err := readSpec(bundle); err == nil && s.sandbox() {
		errs = append(errs, CleanSandbox(bundle))
	} else {
		errs = append(errs, cleanContainer(ctx, bundle, id))
	}
	answer.ExitedAt = timestamppb.Now()
	var record exitRecord
	if readJSON(filepath.Join(bundle, exitFile), &record) == nil && !record.At.IsZero() {
		answer.Pid, answer.ExitStatus = uint32(record.Pid), uint32(record.Status)
		answer.ExitedAt = timestamppb.New(record.At)
	}
	data, err := proto.Marshal(answer)
	return data, errors.Join(append(errs, err)...)
}

// CleanSandbox ends the process that holds a pod's namespaces and removes its cgroup, when the shim is gone. A bundle
// of something else is left alone.
func CleanSandbox(bundle string) error {
	s, err := readSpec(bundle)
	if err != nil || !s.sandbox() {
		return err
	}
	var how settings
	if err := readJSON(filepath.Join(bundle, settingFile), &how); err != nil || how.Binary == "" {
		return err // one of containerd's own shim's, whose sandbox is a container of runc's
	}
	if pid, err := runc.ReadPidFile(filepath.Join(bundle, pidFile)); err == nil {
		awaitHolder(pid)
	}
	return s.ownCgroup(how.SystemdCgroup).remove()
}

func cleanContainer(ctx context.Context, bundle, id string) error {
	var s settings
	if err := readJSON(filepath.Join(bundle, settingFile), &s); err != nil {
		return err
	}
	var errs []error
	if s.Binary != "" {
		if _, err := os.Stat(filepath.Join(s.Root, id)); !errors.Is(err, fs.ErrNotExist) {
			r := newRunc(s, filepath.Join(bundle, logFile))
			err := r.Delete(ctx, id, &runc.DeleteOpts{Force: true})
			if err != nil && !strings.Contains(err.Error(), "does not exist") {
				errs = append(errs, err)
			}
		}
	}
	errs = append(errs, mount.UnmountRecursive(filepath.Join(bundle, "rootfs"), 0))
	return errors.Join(errs...)
}

// awaitHolder waits for the process that holds a pod's namespaces, which ends with its shim, and ends it if it does
// not. A number that is another process's by now is left alone.
func awaitHolder(pid int) {
	if pid <= 0 {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if !isHolder(pid) {
		return
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, _ := unix.Poll(poll, int(time.Second/time.Millisecond)); n == 0 && isHolder(pid) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		_, _ = unix.Poll(poll, int(time.Second/time.Millisecond))
	}
}

// isHolder reports whether a process is one that holds namespaces: it runs the front program, and not to be a shim.
func isHolder(pid int) bool {
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	return err == nil && strings.TrimSpace(string(name)) == holderName
}
