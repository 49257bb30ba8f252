// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// checkHostPath holds the path against the volume's type, and makes what the type says is to be made. Symlinks are
// followed: the path is the administrator's.
func checkHostPath(h *corev1.HostPathVolumeSource) error {
	kind := corev1.HostPathUnset
	if h.Type != nil {
		kind = *h.Type
	}
	switch kind {
	case corev1.HostPathUnset:
		return nil // anything, also nothing: then the runtime makes a folder
	case corev1.HostPathDirectoryOrCreate:
		// A file in the way is the check's to name, below.
		if err := os.MkdirAll(h.Path, 0o755); err != nil && !errors.Is(err, syscall.ENOTDIR) {
			return fmt.Errorf("hostPath type check failed: %s cannot be created: %w", h.Path, err)
		}
		kind = corev1.HostPathDirectory
	case corev1.HostPathFileOrCreate:
		f, err := os.OpenFile(h.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		switch {
		case err == nil:
			f.Close()
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("hostPath type check failed: the folder of %s does not exist, and FileOrCreate creates only the file: %w", h.Path, err)
		case !errors.Is(err, fs.ErrExist):
			return fmt.Errorf("hostPath type check failed: %s cannot be created: %w", h.Path, err)
		}
		kind = corev1.HostPathFile
	}
	info, err := os.Stat(h.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hostPath type check failed: %s does not exist on the node (type %s)", h.Path, kind)
	}
	if err != nil {
		return fmt.Errorf("hostPath type check failed: %w", err)
	}
	name, holds := meaning(kind)
	if holds == nil {
		return fmt.Errorf("unknown hostPath type %q", kind)
	}
	if !holds(info.Mode()) {
		return fmt.Errorf("hostPath type check failed: %s is not a %s", h.Path, name)
	}
	return nil
}

// meaning of a hostPath type: its name in a sentence, and the test; nil for a type that does not exist.
func meaning(kind corev1.HostPathType) (name string, holds func(fs.FileMode) bool) {
	switch kind {
	case corev1.HostPathDirectory:
		return "directory", fs.FileMode.IsDir
	case corev1.HostPathFile:
		return "file", fs.FileMode.IsRegular
	case corev1.HostPathSocket:
		return "socket file", func(m fs.FileMode) bool { return m&fs.ModeSocket != 0 }
	case corev1.HostPathCharDev:
		return "character device", func(m fs.FileMode) bool { return m&fs.ModeCharDevice != 0 }
	case corev1.HostPathBlockDev:
		return "block device", func(m fs.FileMode) bool { return m&fs.ModeDevice != 0 && m&fs.ModeCharDevice == 0 }
	}
	return "", nil
}
