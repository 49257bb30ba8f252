// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// PID-03, PID-04: what is taken from a container's specification: whether it is a sandbox, whether processes can
// outlive its first one, and whose cgroup its is.
func TestSpec(t *testing.T) {
	for name, c := range map[string]struct {
		text                      string
		sandbox, outlived, hooked bool
	}{
		"own PID namespace": {text: `{"linux":{"namespaces":[{"type":"pid"},{"type":"ipc","path":"/proc/1/ns/ipc"}]}}`},
		"the pod's": {text: `{"linux":{"namespaces":[{"type":"pid","path":"/proc/7/ns/pid"}]}}`,
			outlived: true},
		"the machine's": {text: `{"linux":{"namespaces":[{"type":"ipc"}]}}`, outlived: true},
		"nothing":       {text: `{}`, outlived: true},
		"a sandbox": {
			text:    `{"annotations":{"io.kubernetes.cri.container-type":"sandbox"},"linux":{"namespaces":[{"type":"pid"}]}}`,
			sandbox: true,
		},
		"hooks": {
			text:   `{"hooks":{"poststop":[{"path":"/x"}]},"linux":{"namespaces":[{"type":"pid"}]}}`,
			hooked: true,
		},
		"hooks of a start": {text: `{"hooks":{"poststart":[{"path":"/x"}]},"linux":{"namespaces":[{"type":"pid"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := readSpec(dir)
			if err != nil {
				t.Fatal(err)
			}
			if s.sandbox() != c.sandbox || s.outlived() != c.outlived || s.hooked() != c.hooked {
				t.Errorf("sandbox %v, outlived %v, hooked %v", s.sandbox(), s.outlived(), s.hooked())
			}
		})
	}
}

// PL-20: sysctls are files, and a name with slashes has dots of its own.
func TestHolderWords(t *testing.T) {
	dir := t.TempDir()
	text := `{"hostname":"web-0","linux":{"sysctl":{"net.ipv4.ip_forward":"1","net/ipv4/conf/eth0.1/rp_filter":"0"},
		"namespaces":[{"type":"pid"},{"type":"ipc"},{"type":"uts"},{"type":"network","path":"/run/n"},{"type":"user","path":"/run/u"}]}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := readSpec(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := holder{spec: s, bundle: "/b"}.words()
	want := []string{
		"r/b/rootfs", "u/run/u", "n/run/n", "i", "t", "p", "hweb-0", "snet/ipv4/ip_forward=1",
		"snet/ipv4/conf/eth0.1/rp_filter=0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (holder{bundle: "/b"}).words(); !slices.Equal(got, []string{"r/b/rootfs"}) {
		t.Errorf("all of the machine's: %q", got)
	}
}

// PL-20: a sysctl is set in a namespace of the pod's own, or not at all.
func TestHolderSysctls(t *testing.T) {
	for _, c := range []struct{ sysctl, namespaces, want string }{
		{"kernel.domainname", "uts", ""},
		{"kernel.domainname", "ipc pid network user", "the pod has no uts namespace"},
		{"kernel/hostname", "network", "the pod has no uts namespace"},
		{"net.ipv4.ip_forward", "network", ""},
		{"net/ipv4/conf/eth0.1/rp_filter", "network", ""},
		{"net.ipv4.ip_forward", "uts", "the pod has no network namespace"},
		{"user.max_user_namespaces", "user", ""},
		{"user.max_user_namespaces", "network", "the pod has no user namespace"},
		{"kernel.msgmax", "ipc", ""},
		{"kernel.sem", "uts", "the pod has no ipc namespace"},
		{"kernel.shm_rmid_forced", "uts", "the pod has no ipc namespace"},
		{"fs.mqueue.msg_max", "uts", "the pod has no ipc namespace"},
		{"vm.swappiness", "ipc uts network user pid mount", "belongs to the machine"},
		{"net/../vm/swappiness", "network", "belongs to the machine"},
	} {
		s := spec{}
		s.Linux.Sysctl = map[string]string{c.sysctl: "1"}
		for _, n := range strings.Fields(c.namespaces) {
			s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.LinuxNamespaceType(n)})
		}
		if err := (holder{spec: s}).foreign(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v, want %q", c.sysctl, c.namespaces, err, c.want)
		}
	}
}

// PL-38: the holder's words, and what is not one.
func TestReadHolder(t *testing.T) {
	for words, want := range map[string]struct {
		pid  int
		fail bool
	}{
		"12\nready\n":                     {pid: 12},
		"12\n":                            {pid: 12, fail: true},
		"12\nhost name: no\n":             {pid: 12, fail: true},
		"network namespace: no such file": {fail: true},
		"":                                {fail: true},
	} {
		pid, err := readHolder(words)
		if pid != want.pid || (err != nil) != want.fail {
			t.Errorf("%q: %d, %v", words, pid, err)
		}
	}
}

// PL-15: what runc says last is what went wrong; what is not of its log is passed over.
func TestLastError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.json")
	text := `{"level":"warning","msg":"w"}
{"level":"error","msg":"first"}
not of the log
{"level":"error","msg":" exec failed: no such file "}
{"level":"info","msg":"i"}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := lastError(path); got != "exec failed: no such file" {
		t.Errorf("%q", got)
	}
	if got := lastError(path + ".none"); got != "" {
		t.Errorf("no log: %q", got)
	}
}

// FuzzSpec: no specification makes the shim panic.
func FuzzSpec(f *testing.F) {
	f.Add(`{"linux":{"namespaces":[{"type":"pid"}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := readSpec(dir)
		if err != nil {
			return
		}
		_, _, _ = s.sandbox(), s.outlived(), s.hooked()
		_ = holder{spec: s}.foreign()
		_ = holder{spec: s}.words()
		_ = holder{spec: s}.attributes()
	})
}
