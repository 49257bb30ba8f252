// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Files in a bundle, besides those of the OCI specification and containerd.
const (
	pidFile     = "init.pid"  // the number of the container's first process
	exitFile    = "exit.json" // how that ended
	settingFile = "runc.json" // how runc is called
	// goneFile says that nothing is left to be cleaned. It holds the answer to a "delete", so that the front program
	// can give it without starting this one.
	goneFile = "gone"
)

// spec is what a shim needs of an OCI runtime specification; the rest is runc's.
type spec struct {
	Hostname    string            `json:"hostname"`
	Annotations map[string]string `json:"annotations"`
	Hooks       *struct {
		Poststop []json.RawMessage `json:"poststop"`
	} `json:"hooks"`
	Linux struct {
		Namespaces  []specs.LinuxNamespace `json:"namespaces"`
		Sysctl      map[string]string      `json:"sysctl"`
		CgroupsPath string                 `json:"cgroupsPath"`
		UIDMappings []specs.LinuxIDMapping `json:"uidMappings"`
		GIDMappings []specs.LinuxIDMapping `json:"gidMappings"`
	} `json:"linux"`
}

// The annotation by which the CRI plugin distinguishes a sandbox from a container (containerd,
// internal/cri/annotations).
const (
	kindAnnotation = "io.kubernetes.cri.container-type"
	kindSandbox    = "sandbox"
)

func readSpec(bundle string) (spec, error) {
	var s spec
	data, err := os.ReadFile(filepath.Join(bundle, "config.json"))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w", filepath.Join(bundle, "config.json"), err)
	}
	return s, nil
}

// sandbox reports whether it is a pod's sandbox rather than a container.
func (s spec) sandbox() bool { return s.Annotations[kindAnnotation] == kindSandbox }

// namespace finds a namespace. Without one the host's is meant; a path says which to join.
func (s spec) namespace(kind specs.LinuxNamespaceType) (path string, own bool) {
	for _, n := range s.Linux.Namespaces {
		if n.Type == kind {
			return n.Path, true
		}
	}
	return "", false
}

// outlived reports whether processes of the container can outlive its first one: where that is not the first of its PID
// namespace.
func (s spec) outlived() bool {
	path, own := s.namespace(specs.PIDNamespace)
	return !own || path != ""
}

// ownCgroup is where a sandbox's process is put. Where systemd has the cgroups, that is for it to say, and the process
// stays with the shim.
func (s spec) ownCgroup(systemd bool) cgroup {
	if systemd {
		return nil
	}
	return cgroupAt(cgroupRoot, s.Linux.CgroupsPath)
}

// hooked reports whether something is to be run when the container is deleted, which is runc's to do.
func (s spec) hooked() bool { return s.Hooks != nil && len(s.Hooks.Poststop) > 0 }

// settings say how runc is called. They are kept in the bundle for the day on which the shim is not there.
type settings struct {
	Binary        string `json:"binary"`
	Root          string `json:"root"` // with the namespace
	SystemdCgroup bool   `json:"systemdCgroup,omitempty"`
}

func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// readJSON reads into v, which stays as it is if there is no such file.
func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// lastError finds the last error that runc has written, in its log: one JSON object a line.
func lastError(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	last := ""
	for line := range strings.Lines(string(data)) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Level == "error" {
			last = strings.TrimSpace(entry.Msg)
		}
	}
	return last
}
