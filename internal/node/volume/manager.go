// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/csi"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Sources gives what volumes are filled with. The objects are not changed by the Manager. A ConfigMap or Secret that
// does not exist is an error for which apierrors.IsNotFound holds. Calls may wait until the object is known, within
// ctx.
type Sources interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// ServiceAccountToken gives a token of the pod's service account and when it expires; a fresh one once the last has
	// spent 80 % of its life.
	ServiceAccountToken(ctx context.Context, pod *corev1.Pod,
		p *corev1.ServiceAccountTokenProjection) (string, time.Time, error)
	// TrustBundle gives certificates in PEM, none if they may be missing and are.
	TrustBundle(ctx context.Context, p *corev1.ClusterTrustBundleProjection) ([]byte, error)
	// PodCertificate gives the key and the certificates of a source, in PEM; with wait it may wait for the first ones.
	PodCertificate(ctx context.Context, pod *corev1.Pod, volume string, source int,
		wait bool) (key, chain []byte, err error)
}

// Config of a Manager. Root and Sources are required.
type Config struct {
	// Root is the folder that holds one folder per pod. It is made when missing.
	Root    string
	Sources Sources
	Claims  Claims       // nil: there is no API server
	CSI     *csi.Manager // likewise
	// Allocatable of the node: the size of a memory emptyDir without any limit, and what a resourceFieldRef shows for
	// one.
	Allocatable corev1.ResourceList
	// RecursiveReadOnly says that the runtime can make mounts read-only recursively.
	RecursiveReadOnly bool
	Logger            *slog.Logger
}

// Manager sets up the volumes of pods. Safe for concurrent use; calls for one pod wait for one another.
type Manager struct {
	cfg   Config
	locks locks
}

// New makes a Manager. Nothing is touched but Root, which is made and its symlinks resolved, since the kernel's list of
// mounts has no symlinks; when that fails, the first Prepare says why.
func New(cfg Config) *Manager {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	_ = os.MkdirAll(cfg.Root, 0o750)
	if abs, err := filepath.Abs(cfg.Root); err == nil {
		cfg.Root = abs
	}
	if real, err := filepath.EvalSymlinks(cfg.Root); err == nil {
		cfg.Root = real
	}
	return &Manager{cfg: cfg, locks: locks{held: map[types.UID]*lock{}}}
}

// Prepare sets up every volume that some container of the pod mounts. It can be repeated at any time, also while the
// pod runs and after a crash; volumes that are there are brought up to date. All volumes are tried; the error holds a
// SetUpError for each that failed (see Failures).
func (m *Manager) Prepare(ctx context.Context, pod *corev1.Pod) error {
	_, err := m.all(ctx, pod, func(corev1.VolumeSource) bool { return true })
	return err
}

// Refresh brings configMap, secret, downwardAPI and projected volumes up to date with the objects they show, service
// account tokens too, while containers run; changed reports whether any file did change. A volume whose object is gone
// or cannot be read keeps its last contents, and the error says so. Files mounted by subPath do not change: containers
// hold the old ones.
func (m *Manager) Refresh(ctx context.Context, pod *corev1.Pod) (changed bool, err error) {
	return m.all(ctx, pod, isFiles)
}

func (m *Manager) all(ctx context.Context, pod *corev1.Pod,
	want func(corev1.VolumeSource) bool) (changed bool, err error) {
	dir, err := m.podDir(pod.UID)
	if err != nil {
		return false, err
	}
	defer m.locks.take(pod.UID)()
	if err := os.MkdirAll(filepath.Join(dir, "volumes"), 0o750); err != nil {
		return false, fmt.Errorf("the pod's volume folder: %w", err)
	}
	var errs []error
	for _, v := range mounted(pod) {
		if !want(v.VolumeSource) {
			continue
		}
		c, err := m.setUp(ctx, pod, v)
		changed = changed || c
		if err != nil {
			errs = append(errs, &SetUpError{Volume: v.Name, Err: err})
		}
	}
	return changed, errors.Join(errs...)
}

// setUp makes one volume, or brings it up to date.
func (m *Manager) setUp(ctx context.Context, pod *corev1.Pod, v corev1.Volume) (changed bool, err error) {
	switch {
	case v.EmptyDir != nil:
		return false, m.emptyDir(pod, v)
	case v.Image != nil:
		return false, nil // the runtime mounts it
	case v.HostPath != nil:
		return false, checkHostPath(v.HostPath)
	case podspec.ClaimName(pod, &v) != "":
		return false, m.claim(ctx, pod, v)
	case v.NFS != nil:
		return false, m.nfs(ctx, pod, v)
	case v.CSI != nil:
		return false, m.inline(ctx, pod, v)
	case isFiles(v.VolumeSource):
		p, err := m.gather(ctx, pod, v)
		if err != nil {
			return false, err
		}
		return m.show(pod, v, p)
	}
	return false,
		errors.New("this kind of volume is not supported yet: use emptyDir, hostPath, configMap, secret, downwardAPI, projected, image, nfs, csi or a persistentVolumeClaim")
}

// mounted lists the volumes that some container mounts, or has variables from. Others are not set up: a missing
// ConfigMap that nobody looks at holds up no pod.
func mounted(pod *corev1.Pod) []corev1.Volume {
	names := map[string]bool{}
	for ref := range podspec.Containers(&pod.Spec) {
		for _, vm := range ref.Container.VolumeMounts {
			names[vm.Name] = true
		}
		for _, d := range ref.Container.VolumeDevices {
			names[d.Name] = true
		}
		for i := range ref.Container.Env {
			if from := ref.Container.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil {
				names[from.FileKeyRef.VolumeName] = true
			}
		}
	}
	var out []corev1.Volume
	for _, v := range pod.Spec.Volumes {
		if names[v.Name] {
			out = append(out, v)
		}
	}
	return out
}

// isFiles: the volume shows API data as files.
func isFiles(v corev1.VolumeSource) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil
}

// List gives the pods that have a folder here, whether or not anything of them still runs: after a reboot the agent
// cleans up after those it no longer knows.
func (m *Manager) List() ([]types.UID, error) {
	entries, err := os.ReadDir(m.cfg.Root)
	if err != nil {
		return nil, err
	}
	var out []types.UID
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, types.UID(e.Name()))
		}
	}
	return out, nil
}

// podDir is the pod's folder. A uid comes from the API; it must not lead anywhere else.
func (m *Manager) podDir(uid types.UID) (string, error) {
	if s := string(uid); s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\x00") {
		return "", fmt.Errorf("pod UID %q cannot be used as a folder name", uid)
	}
	return filepath.Join(m.cfg.Root, string(uid)), nil
}

// volumeDir is where the volume's files are; for a hostPath that is the path itself.
func (m *Manager) volumeDir(uid types.UID, v corev1.Volume) string {
	if v.HostPath != nil {
		return v.HostPath.Path
	}
	kind := "unknown"
	switch {
	case v.EmptyDir != nil:
		kind = "empty-dir"
	case v.ConfigMap != nil:
		kind = "configmap"
	case v.Secret != nil:
		kind = "secret"
	case v.DownwardAPI != nil:
		kind = "downward-api"
	case v.Projected != nil:
		kind = "projected"
	case v.PersistentVolumeClaim != nil || v.Ephemeral != nil:
		kind = "claim"
	case v.NFS != nil:
		kind = "nfs"
	case v.CSI != nil:
		kind = "csi"
	}
	return filepath.Join(m.cfg.Root, string(uid), "volumes", "kubernetes.io~"+kind, v.Name)
}

// locks are mutexes by pod that exist only while someone wants them.
type locks struct {
	mu   sync.Mutex
	held map[types.UID]*lock
}

type lock struct {
	sync.Mutex
	wanted int
}

// take waits for the pod's lock and returns what gives it back.
func (l *locks) take(uid types.UID) (release func()) {
	l.mu.Lock()
	k := l.held[uid]
	if k == nil {
		k = &lock{}
		l.held[uid] = k
	}
	k.wanted++
	l.mu.Unlock()
	k.Lock()
	return func() {
		k.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.wanted--; k.wanted == 0 {
			delete(l.held, uid)
		}
	}
}
