// SPDX-License-Identifier: Apache-2.0

package enginesocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// Place is where an engine may listen.
type Place struct {
	Engine   string // as it is called: Docker
	Variable string // of the environment, that names its socket
	Usual    []string
}

// DockerPlace is Docker's; uid is that of whose rootless one is looked at first, 0 for nobody's.
func DockerPlace(uid int) Place {
	p := Place{"Docker", "DOCKER_HOST", []string{"/run/docker.sock", "/var/run/docker.sock"}}
	if uid > 0 {
		p.Usual = append([]string{fmt.Sprintf("/run/user/%d/docker.sock", uid)}, p.Usual...)
	}
	return p
}

// ContainerdPlace is that of a containerd; Docker's own one is the last.
func ContainerdPlace() Place {
	return Place{"containerd", "CONTAINERD_ADDRESS", []string{"/run/containerd/containerd.sock",
		"/run/docker/containerd/containerd.sock"}}
}

// CRIPlace is that of a runtime of Kubernetes. Distributions that bring their own are looked at first: a containerd of
// the machine's may be there for Docker alone. Wherry's own is the last.
func CRIPlace() Place {
	return Place{"a CRI runtime", "CONTAINER_RUNTIME_ENDPOINT", []string{
		"/run/k3s/containerd/containerd.sock", "/run/k0s/containerd.sock",
		"/var/snap/microk8s/common/run/containerd.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock",
		"/run/cri-dockerd.sock", "/var/lib/wherry/cri.sock"}}
}

// Absent is the error for an engine that is not on this machine, where nobody has named it.
type Absent struct {
	What  string
	Named string // how another socket is named, on a command line; empty: there is none
}

func (e *Absent) Error() string {
	if e.Named == "" {
		return e.What
	}
	return e.What + " (" + e.Named + ")"
}

// paths are those to try: the one that was asked for, else that of the environment, else the usual ones.
func (p Place) paths(address string, getenv func(string) string) (paths []string, asked bool, err error) {
	by := "--address"
	if address == "" {
		address, by = getenv(p.Variable), p.Variable
	}
	if address == "" {
		return p.Usual, false, nil
	}
	path := strings.TrimPrefix(address, "unix://")
	if !strings.HasPrefix(path, "/") {
		return nil, true,
			fmt.Errorf("%s is %q: only engines of this machine can be used, by a socket's absolute path: "+
				"for another machine's, use wherry there", by, address)
	}
	return []string{path}, true, nil
}

// Find is the path of the socket that is meant: the first behind which something listens.
func (p Place) Find(ctx context.Context, address string, getenv func(string) string) (string, error) {
	paths, asked, err := p.paths(address, getenv)
	if err != nil {
		return "", err
	}
	var d net.Dialer
	for _, path := range paths {
		conn, err := d.DialContext(ctx, "unix", path)
		switch {
		case err == nil:
			return path, conn.Close()
		case errors.Is(err, fs.ErrNotExist):
			continue
		}
		return "", p.trouble(path, err) // this one is meant: the others would be a surprise
	}
	text := fmt.Sprintf("%s is not here: there is no socket %s", p.Engine, strings.Join(paths, " nor "))
	if asked {
		return "", errors.New(text + " (is it running?)")
	}
	return "", &Absent{text, fmt.Sprintf("--address or %s names another", p.Variable)}
}

// trouble says plainly why a socket that is there is of no use.
func (p Place) trouble(path string, err error) error {
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%s does not listen at %s: is it running?", p.Engine, path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %s is not for this user: use sudo", p.Engine, path)
	}
	return fmt.Errorf("%s: %w", p.Engine, err)
}
