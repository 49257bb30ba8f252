// SPDX-License-Identifier: Apache-2.0

package ocispec

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

func everything() []string {
	return []string{"CAP_CHOWN", "CAP_NET_RAW", "CAP_SYS_PTRACE", "CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_SETUID"}
}

// DA-04: a profile gives what it says, and never what the caller does not have.
func TestProfiles(t *testing.T) {
	for _, c := range []struct {
		profile  string
		bounding []string
		want     string
		filtered bool
	}{
		{"", everything(), "CAP_CHOWN CAP_NET_RAW CAP_SETUID CAP_SYS_PTRACE", true},
		{"general", everything(), "CAP_CHOWN CAP_NET_RAW CAP_SETUID CAP_SYS_PTRACE", true},
		{"baseline", everything(), "CAP_CHOWN CAP_NET_RAW CAP_SETUID", true},
		{"legacy", everything(), "CAP_CHOWN CAP_NET_RAW CAP_SETUID", true},
		{"netadmin", everything(), "CAP_CHOWN CAP_NET_ADMIN CAP_NET_RAW CAP_SETUID CAP_SYS_PTRACE", true},
		{"restricted", everything(), "", true},
		{"sysadmin", everything(), "CAP_CHOWN CAP_NET_ADMIN CAP_NET_RAW CAP_SETUID CAP_SYS_ADMIN CAP_SYS_PTRACE",
			false},
		{"netadmin", []string{"CAP_CHOWN"}, "CAP_CHOWN", true},
		{"sysadmin", nil, "", false},
	} {
		o := Options{Profile: c.profile, Command: []string{"true"}}
		s, err := New(o, Image{}, Placement{Bounding: c.bounding})
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Sorted(slices.Values(s.Process.Capabilities.Bounding))
		if strings.Join(got, " ") != c.want || Filtered(o) != c.filtered {
			t.Errorf("%q of %v: %v, filtered %v", c.profile, c.bounding, got, Filtered(o))
		}
		if c.filtered == (len(s.Linux.MaskedPaths) == 0) {
			t.Errorf("%q masks %v", c.profile, s.Linux.MaskedPaths)
		}
		if s.Process.NoNewPrivileges != (c.profile == "restricted") {
			t.Errorf("%q: noNewPrivileges is %v", c.profile, s.Process.NoNewPrivileges)
		}
	}
	if _, err := New(Options{Profile: "foo"}, Image{}, Placement{}); err == nil ||
		!strings.Contains(err.Error(), "restricted") {
		t.Errorf("profile foo: %v", err)
	}
}

// DA-04: whom the command runs as: who was asked for, else the image's user, and never root where it may not be. Only
// root has capabilities without more.
func TestUser(t *testing.T) {
	group := int64(20)
	for name, c := range map[string]struct {
		w        Options
		img      Image
		uid, gid uint32
	}{
		"the image's":            {Options{}, Image{UID: 7, GID: 8}, 7, 8},
		"asked for":              {Options{User: &debugask.User{UID: 10}}, Image{UID: 7, GID: 8}, 10, 8},
		"with a group":           {Options{User: &debugask.User{UID: 10, GID: &group}}, Image{UID: 7, GID: 8}, 10, 20},
		"restricted":             {Options{Profile: "restricted"}, Image{}, nobody, nobody},
		"restricted, its own":    {Options{Profile: "restricted"}, Image{UID: 7, GID: 8}, 7, 8},
		"restricted, asked root": {Options{Profile: "restricted", User: &debugask.User{}}, Image{UID: 7}, 0, 0},
	} {
		s, err := New(c.w, c.img, Placement{Bounding: everything()})
		if err != nil {
			t.Fatal(err)
		}
		if u := s.Process.User; u.UID != c.uid || u.GID != c.gid {
			t.Errorf("%s: %d:%d", name, u.UID, u.GID)
		}
		if (len(s.Process.Capabilities.Effective) > 0) != (c.uid == 0 && c.w.Profile != "restricted") {
			t.Errorf("%s: effective %v", name, s.Process.Capabilities.Effective)
		}
	}
}

// DA-01, DA-02: the target's namespaces are joined, but never its mounts; what it lacks is made new; a network that is
// not its user namespace's leaves /sys to be bound.
func TestNamespaces(t *testing.T) {
	joined := map[specs.LinuxNamespaceType]string{specs.PIDNamespace: "/p", specs.NetworkNamespace: "/n",
		specs.UserNamespace: "/u"}
	s, err := New(Options{}, Image{}, Placement{Namespaces: joined, Files: "/files", Hostname: "web"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[specs.LinuxNamespaceType]string{specs.PIDNamespace: "/p", specs.NetworkNamespace: "/n",
		specs.UserNamespace: "/u", specs.IPCNamespace: "", specs.UTSNamespace: "", specs.MountNamespace: ""}
	for _, n := range s.Linux.Namespaces {
		if path, ok := want[n.Type]; !ok || path != n.Path {
			t.Errorf("%s at %q", n.Type, n.Path)
		}
		delete(want, n.Type)
	}
	if len(want) > 0 || s.Linux.Namespaces[0].Type != specs.UserNamespace {
		t.Errorf("missing %v, first %s", want, s.Linux.Namespaces[0].Type)
	}
	if s.Hostname != "web" {
		t.Errorf("hostname %q", s.Hostname)
	}
	at := func(s *specs.Spec, dir string) specs.Mount {
		i := slices.IndexFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == dir })
		return s.Mounts[i]
	}
	if m := at(s, "/sys"); !slices.Contains(m.Options, "rbind") || !slices.Contains(m.Options, "ro") {
		t.Errorf("/sys: %+v", m)
	}
	if m := at(s, FilesAt); m.Source != "/files" || !slices.Contains(m.Options, "ro") {
		t.Errorf("%s: %+v", FilesAt, m)
	}
	s, err = New(Options{}, Image{}, Placement{Namespaces: joined, OwnNetwork: true})
	if err != nil || at(s, "/sys").Type != "sysfs" {
		t.Errorf("/sys: %+v, %v", at(s, "/sys"), err)
	}
}

// DA-04: limits are the cgroup's, and there is always one for processes.
func TestLimits(t *testing.T) {
	s, err := New(Options{Memory: 64 << 20, CPUs: 0.5}, Image{}, Placement{Cgroup: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	r := s.Linux.Resources
	if *r.Memory.Limit != 64<<20 || *r.CPU.Quota != 50_000 || *r.CPU.Period != 100_000 || *r.Pids.Limit != maxPIDs ||
		s.Linux.CgroupsPath != "/x" {
		t.Errorf("%+v %+v %+v in %s", r.Memory, r.CPU, r.Pids, s.Linux.CgroupsPath)
	}
	s, err = New(Options{}, Image{}, Placement{})
	if err != nil || s.Linux.Resources.Memory != nil || s.Linux.Resources.CPU != nil {
		t.Errorf("without limits: %+v, %v", s.Linux.Resources, err)
	}
}

// A command has a PATH, and a terminal its name, also of an image that says nothing.
func TestEnvironment(t *testing.T) {
	s, err := New(Options{TTY: true, Term: "xterm"}, Image{Command: []string{"sh"}}, Placement{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Process.Env, " "); !strings.HasPrefix(got, "PATH=/usr/local/sbin:") ||
		!strings.HasSuffix(got, "TERM=xterm") {
		t.Errorf("environment %q", got)
	}
	if s.Process.Cwd != "/" || !s.Process.Terminal || s.Process.Args[0] != "sh" {
		t.Errorf("%+v", s.Process)
	}
	s, err = New(Options{Term: "xterm"}, Image{Env: []string{"PATH=/bin"}}, Placement{})
	if err != nil || strings.Join(s.Process.Env, " ") != "PATH=/bin" {
		t.Errorf("%v, %v", s.Process.Env, err)
	}
}
