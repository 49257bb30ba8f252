// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// fileKey is a variable from a file that a container of the pod has written into one of its volumes (PL-27).
func (in *Input) fileKey(ref *corev1.FileKeySelector) (string, bool, error) {
	if in.File == nil {
		return "", false, fmt.Errorf("cannot read file %q of volume %q", ref.Path, ref.VolumeName)
	}
	data, err := in.File(ref.VolumeName, ref.Path)
	if errors.Is(err, fs.ErrNotExist) && isTrue(ref.Optional) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("cannot read file %q of volume %q: %w", ref.Path, ref.VolumeName, err)
	}
	value, err := FileValue(string(data), ref.Key)
	switch {
	case err != nil:
		return "", false, fmt.Errorf("couldn't parse env file %q of volume %q: %w", ref.Path, ref.VolumeName, err)
	case value == "" && !isTrue(ref.Optional):
		return "", false, fmt.Errorf("environment variable key %q not found in file %q of volume %q", ref.Key, ref.Path,
			ref.VolumeName)
	}
	return value, value != "", nil
}

// FileValue finds the first value of key in the text of an environment file, "" when it has none. What stands behind
// it is not looked at. The form is Kubernetes' subset of a shell's: NAME='value', the value in single quotes and taken
// as it is, also over several lines; a comment may follow. Empty lines and those that begin with # are left out. White
// space before = is wrong; behind it, as for a shell, the value is empty.
func FileValue(text, key string) (string, error) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		at := i + 1
		line := strings.TrimLeft(strings.TrimSuffix(lines[i], "\r"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, ok := strings.Cut(line, "=")
		switch {
		case !ok:
			return "", fmt.Errorf("line %d: missing '='", at)
		case strings.TrimRight(name, " \t") == "":
			return "", fmt.Errorf("line %d: the variable has no name", at)
		case strings.TrimRight(name, " \t") != name:
			return "", fmt.Errorf("line %d: white space before '=' is not allowed", at)
		}
		if strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "\t") {
			if name == key {
				return "", nil
			}
			continue
		}
		if !strings.HasPrefix(rest, "'") {
			return "", fmt.Errorf("line %d: the value must be enclosed in single quotes", at)
		}
		value, behind, closed := strings.Cut(rest[1:], "'")
		for !closed {
			if i++; i >= len(lines) || i == len(lines)-1 && lines[i] == "" { // what follows the last newline is no line
				return "", fmt.Errorf("line %d: the single quote is not closed", at)
			}
			var more string
			more, behind, closed = strings.Cut(strings.TrimSuffix(lines[i], "\r"), "'")
			value += "\n" + more
		}
		if behind = strings.TrimLeft(behind, " \t"); behind != "" && behind[0] != '#' {
			return "", fmt.Errorf("line %d: something stands behind the closing quote", i+1)
		}
		if name == key {
			return value, nil
		}
	}
	return "", nil
}
