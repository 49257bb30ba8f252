// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LogFolders are where pods' logs lie (PL-09): in one folder per pod below Pods, and, for log shippers, as links in
// Links.
type LogFolders struct {
	Pods  string
	Links string
}

// Of returns the folder of a pod's logs.
func (l LogFolders) Of(p *corev1.Pod) string {
	return filepath.Join(l.Pods, p.Namespace+"_"+p.Name+"_"+string(p.UID))
}

// File returns the log file of one attempt of a container.
func (l LogFolders) File(p *corev1.Pod, container string, attempt uint32) string {
	return filepath.Join(l.Of(p), container, fmt.Sprintf("%d.log", attempt))
}

// Has tells whether the pod has a log folder.
func (l LogFolders) Has(p *corev1.Pod) bool {
	_, err := os.Lstat(l.Of(p))
	return err == nil
}

// PodRef names a pod that has a log folder.
type PodRef struct {
	UID             types.UID
	Namespace, Name string
}

// List returns the pods that have a log folder. What is not named like one is left alone.
func (l LogFolders) List() (out []PodRef, err error) {
	entries, err := os.ReadDir(l.Pods)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if f := strings.Split(e.Name(), "_"); e.IsDir() && len(f) == 3 {
			out = append(out, PodRef{types.UID(f[2]), f[0], f[1]})
		}
	}
	return out, err
}

// make makes the pod's folder.
func (l LogFolders) make(p *corev1.Pod) error { return os.MkdirAll(l.Of(p), 0o755) }

// makeFor makes the folder of one container's logs.
func (l LogFolders) makeFor(p *corev1.Pod, container string) error {
	return os.MkdirAll(filepath.Join(l.Of(p), container), 0o755)
}

func (l LogFolders) remove(p *corev1.Pod) error {
	links, _ := filepath.Glob(filepath.Join(l.Links, p.Name+"_"+p.Namespace+"_*.log"))
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && filepath.Dir(filepath.Dir(to)) == l.Of(p) {
			_ = os.Remove(link)
		}
	}
	return os.RemoveAll(l.Of(p))
}

func (l LogFolders) linkName(p *corev1.Pod, container, id string) string {
	return filepath.Join(l.Links, fmt.Sprintf("%s_%s_%s-%s.log", p.Name, p.Namespace, container, id))
}

// link makes the log visible to shippers. That it fails holds nothing up.
func (l LogFolders) link(p *corev1.Pod, container, id string, attempt uint32) {
	if l.Links == "" {
		return
	}
	if err := os.Symlink(l.File(p, container, attempt), l.linkName(p, container, id)); errors.Is(err, fs.ErrNotExist) {
		if os.MkdirAll(l.Links, 0o755) == nil {
			_ = os.Symlink(l.File(p, container, attempt), l.linkName(p, container, id))
		}
	}
}

func (l LogFolders) unlink(p *corev1.Pod, container, id string) {
	if l.Links != "" {
		_ = os.Remove(l.linkName(p, container, id))
	}
}

// drop removes the log of one attempt, with its rotated parts.
func (l LogFolders) drop(p *corev1.Pod, container, id string, attempt uint32) {
	l.unlink(p, container, id)
	files, _ := filepath.Glob(l.File(p, container, attempt) + "*")
	for _, f := range files {
		_ = os.Remove(f)
	}
}
