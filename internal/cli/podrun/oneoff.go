// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"bufio"
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/manifest"
)

// oneOffGrace is the grace of a pod that a command line describes, as docker has it: its process is often a shell,
// which takes no SIGTERM.
const oneOffGrace = 10

// OneOff is a pod of one container as a command line describes it, in docker's words.
type OneOff struct {
	Image      string
	Command    []string // instead of the image's own, after its entry point
	Name       string   // "": made of the image's
	Entrypoint string
	Workdir    string
	User       string   // UID[:GID]
	Pull       string   // always, missing, never; "": missing
	Env        []string // K=V, or K: as it is here
	EnvFiles   []string
	Volumes    []string // HOST:PATH[:ro], or PATH: an empty one
	Ports      []string // [IP:]HOST:CONTAINER[/udp]
	Stdin, TTY bool
}

// Here is where the command line was typed.
type Here struct {
	Folder   string
	Getenv   func(string) (string, bool)
	ReadFile func(string) ([]byte, error)
}

// Object is the pod, as a manifest would hold it.
func (o OneOff) Object(here Here) (manifest.Object, error) {
	pod, err := o.pod(here)
	if err != nil {
		return manifest.Object{}, err
	}
	return manifest.Object{Source: "wherry run " + o.Image, GVK: corev1.SchemeGroupVersion.WithKind("Pod"),
		Object: pod}, nil
}

func (o OneOff) pod(here Here) (*corev1.Pod, error) {
	ref, err := imagename.Parse(o.Image)
	if err != nil {
		return nil, fmt.Errorf("%q is not an image name: %w", o.Image, err)
	}
	name := nameOf(ref)
	c := corev1.Container{Name: name, Image: o.Image, WorkingDir: o.Workdir, Stdin: o.Stdin, StdinOnce: o.Stdin,
		TTY: o.TTY}
	for _, arg := range o.Command {
		c.Args = append(c.Args, ask.Literal(arg))
	}
	if o.Entrypoint != "" {
		c.Command = []string{ask.Literal(o.Entrypoint)}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}
	if o.Name == "" {
		pod.GenerateName = name + "-"
	}
	pod.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: ptr.To[int64](oneOffGrace)}
	if c.ImagePullPolicy, err = pullPolicy(o.Pull); err != nil {
		return nil, err
	}
	if c.SecurityContext, err = user(o.User); err != nil {
		return nil, err
	}
	if c.Env, err = o.environment(here); err != nil {
		return nil, err
	}
	for i, text := range o.Volumes {
		source, mount, err := volume(text, here.Folder)
		if err != nil {
			return nil, err
		}
		mount.Name = fmt.Sprintf("v%d", i)
		c.VolumeMounts = append(c.VolumeMounts, mount)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: mount.Name, VolumeSource: source})
	}
	for _, text := range o.Ports {
		p, err := port(text)
		if err != nil {
			return nil, err
		}
		c.Ports = append(c.Ports, p)
	}
	pod.Spec.Containers = []corev1.Container{c}
	return pod, nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf makes a container's name of an image's.
func nameOf(ref imagename.Reference) string {
	base := ref.Repository[strings.LastIndexByte(ref.Repository, '/')+1:]
	base = notInNames.ReplaceAllString(strings.ToLower(base), "-")
	return strings.Trim(base[:min(len(base), 50)], "-")
}

func pullPolicy(when string) (corev1.PullPolicy, error) {
	switch when {
	case "", "missing":
		return corev1.PullIfNotPresent, nil
	case "always":
		return corev1.PullAlways, nil
	case "never":
		return corev1.PullNever, nil
	}
	return "", fmt.Errorf("--pull %s: use always, missing or never", when)
}

func user(text string) (*corev1.SecurityContext, error) {
	if text == "" {
		return nil, nil
	}
	uid, gid, both := strings.Cut(text, ":")
	u, err := strconv.ParseInt(uid, 10, 32)
	if err != nil || u < 0 {
		return nil, fmt.Errorf("--user %s: use numeric IDs, UID or UID:GID, for example 1000:1000", text)
	}
	s := &corev1.SecurityContext{RunAsUser: &u}
	if both {
		g, err := strconv.ParseInt(gid, 10, 32)
		if err != nil || g < 0 {
			return nil, fmt.Errorf("--user %s: use numeric IDs, UID or UID:GID, for example 1000:1000", text)
		}
		s.RunAsGroup = &g
	}
	return s, nil
}

// environment is that of the files, then that of the command line. What is named twice has its last value.
func (o OneOff) environment(here Here) ([]corev1.EnvVar, error) {
	var all []corev1.EnvVar
	at := map[string]int{}
	add := func(text, where string) error {
		name, value, given := strings.Cut(text, "=")
		if name == "" {
			return fmt.Errorf("%s: %q has no name: write NAME=VALUE, or NAME to pass on its value from here", where,
				text)
		}
		if !given {
			if value, given = here.Getenv(name); !given {
				return nil
			}
		}
		v := corev1.EnvVar{Name: name, Value: ask.Literal(value)}
		if i, twice := at[name]; twice {
			all[i] = v
			return nil
		}
		at[name] = len(all)
		all = append(all, v)
		return nil
	}
	for _, file := range o.EnvFiles {
		data, err := here.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--env-file: %w", err)
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		for n := 1; lines.Scan(); n++ {
			line := strings.TrimLeft(lines.Text(), " \t")
			if line == "" || line[0] == '#' {
				continue
			}
			if err := add(line, fmt.Sprintf("%s:%d", file, n)); err != nil {
				return nil, err
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, text := range o.Env {
		if err := add(text, "-e"); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// volume reads HOST:PATH[:ro], or PATH alone for a volume that is empty and goes with the pod.
func volume(text, folder string) (corev1.VolumeSource, corev1.VolumeMount, error) {
	var source corev1.VolumeSource
	parts := strings.Split(text, ":")
	mount := corev1.VolumeMount{MountPath: parts[len(parts)-1]}
	if len(parts) == 3 {
		mount.MountPath = parts[1]
		switch parts[2] {
		case "ro":
			mount.ReadOnly = true
		case "rw":
		default:
			return source, mount, fmt.Errorf("-v %s: the last part must be ro or rw, not %q", text, parts[2])
		}
	}
	if len(parts) > 3 || !filepath.IsAbs(mount.MountPath) {
		return source, mount,
			fmt.Errorf("-v %s: write HOST:PATH or HOST:PATH:ro, with an absolute PATH in the container, for example -v ./data:/data", text)
	}
	if len(parts) == 1 {
		source.EmptyDir = &corev1.EmptyDirVolumeSource{}
		return source, mount, nil
	}
	host := parts[0]
	if !strings.Contains(host, "/") && host != "." && host != ".." {
		return source, mount,
			fmt.Errorf("-v %s: there are no named volumes here: name a folder or file on this machine, for example -v ./%s:%s", text, host, mount.MountPath)
	}
	if !filepath.IsAbs(host) {
		host = filepath.Join(folder, host)
	}
	source.HostPath = &corev1.HostPathVolumeSource{Path: filepath.Clean(host)}
	return source, mount, nil
}

// port reads [IP:]HOST:CONTAINER[/PROTOCOL].
func port(text string) (corev1.ContainerPort, error) {
	bad := fmt.Errorf("-p %s: write HOST:CONTAINER, this machine's port and the container's, for example -p 8080:80, -p 127.0.0.1:8080:80 or -p 53:53/udp", text)
	rest, protocol, _ := strings.Cut(text, "/")
	p := corev1.ContainerPort{Protocol: corev1.Protocol(strings.ToUpper(protocol))}
	switch p.Protocol {
	case "":
		p.Protocol = corev1.ProtocolTCP
	case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
	default:
		return p, bad
	}
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return p, bad
	}
	inner := rest[i+1:]
	host := rest[:i]
	if i = strings.LastIndexByte(host, ':'); i >= 0 {
		p.HostIP, host = strings.Trim(host[:i], "[]"), host[i+1:]
	}
	outer, err := strconv.ParseUint(host, 10, 16)
	if err != nil || outer == 0 {
		return p, bad
	}
	n, err := strconv.ParseUint(inner, 10, 16)
	if err != nil || n == 0 {
		return p, bad
	}
	p.HostPort, p.ContainerPort = int32(outer), int32(n)
	return p, nil
}
