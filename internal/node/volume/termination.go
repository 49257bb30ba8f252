// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// MaxTerminationMessage is how much of a termination log is shown, in bytes: its end.
const MaxTerminationMessage = 4096

// TerminationLog makes the file that a container's attempt may leave its last words in, writable for whatever user it
// runs as, and returns its path, to be mounted at the container's terminationMessagePath. One that is there is kept as
// it is.
func (m *Manager) TerminationLog(uid types.UID, container string, attempt uint32) (string, error) {
	name, err := m.terminationPath(uid, container, attempt)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return "", err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return name, f.Chmod(0o666) // past the umask
}

// TerminationMessage reads the last MaxTerminationMessage bytes of what the attempt wrote; "" when it wrote nothing or
// the file is gone.
func (m *Manager) TerminationMessage(uid types.UID, container string, attempt uint32) (string, error) {
	name, err := m.terminationPath(uid, container, attempt)
	if err != nil {
		return "", err
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(0, info.Size()-MaxTerminationMessage)
	data, err := io.ReadAll(io.NewSectionReader(f, from, MaxTerminationMessage))
	return string(data), err
}

func (m *Manager) terminationPath(uid types.UID, container string, attempt uint32) (string, error) {
	dir, err := m.podDir(uid)
	if err != nil {
		return "", err
	}
	if container == "" || filepath.Base(container) != container || container == ".." || container == "." {
		return "", fmt.Errorf("container name %q cannot be used as a folder name", container)
	}
	return filepath.Join(dir, "containers", container, strconv.FormatUint(uint64(attempt), 10)), nil
}
