// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/oneline"
)

// nfsPatience is how long a server may take to answer to a mount.
const nfsPatience = 2 * time.Minute

// nfs mounts an nfs volume that a pod names itself.
func (m *Manager) nfs(ctx context.Context, pod *corev1.Pod, v corev1.Volume) error {
	dir := m.volumeDir(pod.UID, v)
	if there, err := isMounted(dir); err != nil || there {
		return err
	}
	return mountNFS(ctx, v.NFS, nil, dir)
}

// mountNFS mounts by the host's helper, which knows versions, ports and locks.
func mountNFS(ctx context.Context, s *corev1.NFSVolumeSource, options []string, dir string) error {
	if _, err := exec.LookPath("mount.nfs"); err != nil {
		if _, err := os.Stat("/sbin/mount.nfs"); err != nil {
			return errors.New("this machine cannot mount nfs: install mount.nfs (Debian, Ubuntu: nfs-common; Fedora: " +
				"nfs-utils)")
		}
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, nfsPatience)
	defer cancel()
	args := nfsArgs(s, options, dir)
	out, err := exec.CommandContext(ctx, "mount", args...).CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("nfs server %s does not answer: %w", s.Server, ctx.Err())
	case err != nil:
		return fmt.Errorf("mount %s: %w: %s", strings.Join(args, " "), err, oneline.Of(string(out)))
	}
	return nil
}

// nfsArgs are the arguments of mount. (Pure.)
func nfsArgs(s *corev1.NFSVolumeSource, options []string, dir string) []string {
	if s.ReadOnly {
		options = append([]string{"ro"}, options...)
	}
	server := s.Server
	if ip := net.ParseIP(server); ip != nil && ip.To4() == nil {
		server = "[" + server + "]"
	}
	args := []string{"-t", "nfs"}
	if len(options) > 0 {
		args = append(args, "-o", strings.Join(options, ","))
	}
	return append(args, "--", server+":"+s.Path, dir)
}
