// SPDX-License-Identifier: Apache-2.0

package ocispec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// FilesAt is where the debugger finds the target's files.
const FilesAt = "/c"

// Image is the configuration of the process to run from an image.
type Image struct {
	Command []string // entry point and command
	Env     []string
	WorkDir string
	UID     uint32 // of its user
	GID     uint32
}

// Options are what the user has asked for.
type Options struct {
	Command []string // empty: the image's own
	TTY     bool
	User    *debugask.User
	Profile string  // empty: general
	Memory  int64   // bytes; 0: no limit
	CPUs    float64 // 0: no limit
	Term    string  // of the caller's terminal
}

// Placement is where the debugger runs: what it joins of the target, and what was made for it.
type Placement struct {
	// Namespaces are the target's, by file; a kind that is missing is made new.
	Namespaces map[specs.LinuxNamespaceType]string
	// OwnNetwork is set when the network namespace belongs to the user namespace that is joined.
	OwnNetwork bool
	Root       string   // the root filesystem, made for this session
	Files      string   // the folder of the target's files
	Bounding   []string // capabilities that the caller can give, as CAP_…
	Cgroup     string   // its path in every hierarchy
	Hostname   string   // where no UTS namespace is joined
}

// maxPIDs bounds a debugger's processes: enough for every tool, too few for a fork bomb to hurt the machine.
const maxPIDs = 2048

// New makes the specification of a debugger. The caller adds the seccomp profile, which depends on the machine's
// kernel.
func New(o Options, img Image, p Placement) (*specs.Spec, error) {
	caps, err := capabilities(o.Profile)
	if err != nil {
		return nil, err
	}
	caps = slices.DeleteFunc(caps, func(c string) bool { return !slices.Contains(p.Bounding, c) })
	s := &specs.Spec{
		Version: specs.Version,
		Root:    &specs.Root{Path: p.Root},
		Process: process(o, img),
		Mounts:  mounts(o, p),
		Linux: &specs.Linux{
			CgroupsPath: p.Cgroup,
			Namespaces:  namespaces(p),
			Resources:   resources(o),
		},
	}
	if all(o) {
		if caps = slices.Clone(p.Bounding); len(caps) == 0 {
			caps = nil
		}
	} else {
		s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = masked(), readOnly()
	}
	s.Process.Capabilities = &specs.LinuxCapabilities{Bounding: caps, Permitted: caps}
	if s.Process.User.UID == 0 {
		s.Process.Capabilities.Effective = caps
	}
	if _, joined := p.Namespaces[specs.UTSNamespace]; !joined {
		s.Hostname = p.Hostname
	}
	return s, nil
}

// firstAt is where the program of the first process is: in a file system that is the debugger's own, whatever its
// image.
const firstAt = "/dev/.wherry"

// Through has the debugger's command run by a program of this machine, which reaps what the command leaves behind.
func Through(s *specs.Spec, first string) {
	s.Mounts = append(s.Mounts, specs.Mount{Destination: firstAt, Type: "bind", Source: first,
		Options: []string{"bind", "ro", "nosuid", "nodev"}})
	s.Process.Args = append([]string{firstAt}, s.Process.Args...)
}

// all reports whether the profile allows everything.
func all(o Options) bool { return o.Profile == "sysadmin" }

// Filtered reports whether the profile has a filter for system calls.
func Filtered(o Options) bool { return !all(o) }

func process(o Options, img Image) *specs.Process {
	pr := &specs.Process{Terminal: o.TTY, Args: o.Command, Cwd: img.WorkDir, Env: slices.Clone(img.Env),
		User: specs.User{UID: img.UID, GID: img.GID}}
	if len(pr.Args) == 0 {
		pr.Args = img.Command
	}
	if pr.Cwd == "" {
		pr.Cwd = "/"
	}
	if !slices.ContainsFunc(pr.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }) {
		pr.Env = append(pr.Env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	if o.TTY && o.Term != "" {
		pr.Env = append(pr.Env, "TERM="+o.Term)
	}
	switch {
	case o.User != nil:
		pr.User.UID, pr.User.GID = uint32(o.User.UID), img.GID
		if o.User.GID != nil {
			pr.User.GID = uint32(*o.User.GID)
		}
	case o.Profile == "restricted" && pr.User.UID == 0:
		pr.User = specs.User{UID: nobody, GID: nobody}
	}
	pr.NoNewPrivileges = o.Profile == "restricted"
	return pr
}

const nobody = 65534

// resources limit what the debugger may use of the machine.
func resources(o Options) *specs.LinuxResources {
	r := &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: new(int64(maxPIDs))}}
	if o.Memory > 0 {
		r.Memory = &specs.LinuxMemory{Limit: new(o.Memory)}
	}
	if o.CPUs > 0 {
		const period = 100_000 // µs, the kernel's own default
		r.CPU = &specs.LinuxCPU{Period: new(uint64(period)), Quota: new(max(int64(o.CPUs*period), 1000))}
	}
	if all(o) {
		r.Devices = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
	}
	return r
}

// namespaces are the target's, and a mount namespace of its own.
func namespaces(p Placement) []specs.LinuxNamespace {
	var out []specs.LinuxNamespace
	if path, ok := p.Namespaces[specs.UserNamespace]; ok {
		out = append(out, specs.LinuxNamespace{Type: specs.UserNamespace, Path: path})
	}
	for _, kind := range []specs.LinuxNamespaceType{specs.PIDNamespace, specs.NetworkNamespace, specs.IPCNamespace,
		specs.UTSNamespace} {
		out = append(out, specs.LinuxNamespace{Type: kind, Path: p.Namespaces[kind]})
	}
	return append(out, specs.LinuxNamespace{Type: specs.MountNamespace})
}

func mounts(o Options, p Placement) []specs.Mount {
	m := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc"},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755",
			"size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance",
			"ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev",
			"mode=1777", "size=65536k"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		sys(o, p),
	}
	// Whether mounts in it may be written to is not changed: each has its own flag.
	return append(m, specs.Mount{Destination: FilesAt, Type: "bind", Source: p.Files, Options: []string{"rbind",
		"rprivate", "ro"}})
}

// sys is the kernel's /sys, which only the owner of the network namespace can mount.
func sys(o Options, p Placement) specs.Mount {
	options := []string{"nosuid", "noexec", "nodev"}
	if !all(o) {
		options = append(options, "ro")
	}
	if _, users := p.Namespaces[specs.UserNamespace]; users && !p.OwnNetwork {
		return specs.Mount{Destination: "/sys", Type: "none", Source: "/sys", Options: append(options, "rbind", "ro")}
	}
	return specs.Mount{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: options}
}

// capabilities are those of a profile, as kubectl debug has them.
func capabilities(profile string) ([]string, error) {
	usual := []string{"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP",
		"SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"}
	switch profile {
	case "", "general":
		usual = append(usual, "SYS_PTRACE")
	case "baseline", "legacy", "sysadmin":
	case "netadmin":
		usual = append(usual, "NET_ADMIN", "SYS_PTRACE")
	case "restricted":
		usual = nil
	default:
		return nil, fmt.Errorf("there is no profile %q: choose one of %s", profile,
			strings.Join(debugask.Profiles(), ", "))
	}
	for i, c := range usual {
		usual[i] = "CAP_" + c
	}
	return usual, nil
}

// masked and readOnly are the paths in /proc and /sys that container engines hide from containers or make read-only.
func masked() []string {
	return []string{"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
		"/sys/devices/virtual/powercap"}
}

func readOnly() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}
