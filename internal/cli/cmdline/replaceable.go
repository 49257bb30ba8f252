// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Replaceable refuses a name that a finished file is not to be moved to: a device or pipe of that name would be gone
// from the machine.
func Replaceable(file string) error {
	// /dev/stdout, also where that is a file now
	if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, "/proc/") {
		return fmt.Errorf("%s is not a regular file and stays as it is: use - for standard output", file)
	}
	info, err := os.Stat(file)
	switch {
	case file == "" || err != nil || info.Mode().IsRegular():
		return nil // what is wrong with the folder shows when a file is made there
	case info.IsDir():
		return fmt.Errorf("%s is a directory: name a file in it", file)
	}
	return fmt.Errorf("%s is not a regular file and stays as it is: name another", file)
}

// Beside makes the file under another name, of mode 0600, that is to be moved to a file's place once it is whole. An
// error names the file that was asked for.
func Beside(file string) (*os.File, error) {
	if err := Replaceable(file); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return nil, fmt.Errorf("%s: %w", file, at.Err)
	}
	return f, err
}
