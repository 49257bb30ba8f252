// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (d *driver) RemovePod(uid types.UID) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	var errs []error
	for _, qos := range []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort} {
		if err := d.remove(d.layout.pod(qos, uid)); err != nil {
			errs = append(errs, fmt.Errorf("pod %s: %w", uid, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.shares[uid]; !ok {
		return nil
	}
	delete(d.shares, uid)
	return d.weighBurstable()
}

func (d *driver) HasPod(uid types.UID) bool {
	if checkUID(uid) != nil {
		return false
	}
	for _, qos := range []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort} {
		for _, p := range d.paths(d.layout.pod(qos, uid)) {
			if cgroups.PathExists(p) {
				return true
			}
		}
	}
	return false
}

func (d *driver) remove(n name) error {
	paths := d.paths(n)
	there := false
	for _, p := range paths {
		there = there || cgroups.PathExists(p)
	}
	if !there {
		return nil
	}
	if d.layout.systemd {
		if err := d.stopUnit(n, paths); err != nil {
			return err
		}
	}
	for _, p := range paths {
		if err := cgroups.RemovePath(p); err != nil { // tries again for a second while busy
			return busy(p, err)
		}
	}
	return nil
}

// stopUnit makes systemd forget a slice. Systemd would kill what is in it, so it must be empty.
func (d *driver) stopUnit(n name, paths map[string]string) error {
	for _, p := range paths {
		for wait := time.Millisecond; ; wait *= 2 {
			pids, err := cgroups.GetAllPids(p)
			if err == nil && len(pids) == 0 || removed(err) {
				break
			}
			if wait > time.Second/2 {
				return busy(p, errors.Join(unix.EBUSY, err))
			}
			time.Sleep(wait) // what was just killed takes a moment to be gone; v1 has no event for it
		}
	}
	m, err := d.manager(n, &cgroups.Resources{SkipDevices: true})
	if err == nil {
		err = m.Destroy()
	}
	if err != nil {
		return fmt.Errorf("cgroup %s: %w", d.layout.path(n), err)
	}
	return nil
}

// busy adds to an error of removal who is in the way.
func busy(path string, err error) error {
	pids, _ := cgroups.GetAllPids(path)
	if len(pids) == 0 {
		return fmt.Errorf("remove cgroup: %w", err)
	}
	text := strings.Trim(fmt.Sprint(pids[:min(len(pids), 10)]), "[]")
	return fmt.Errorf("remove cgroup: %w: processes %s are still in it", err, text)
}

func (d *driver) Teardown() error {
	all := append([]name{d.layout.class(corev1.PodQOSBurstable), d.layout.class(corev1.PodQOSBestEffort),
		d.layout.top()}, d.roots()...)
	for _, n := range all {
		if err := d.remove(n); err != nil {
			return err
		}
	}
	return nil
}

// roots are the cgroups above kubepods that are ours, innermost first.
func (d *driver) roots() []name {
	var out []name
	for i := len(d.layout.root); i > 0; i-- {
		out = append(out, d.layout.root[:i])
	}
	return out
}

func (d *driver) List() ([]types.UID, error) {
	seen := map[types.UID]bool{}
	for _, class := range d.layout.classes() {
		for _, p := range d.paths(class) {
			entries, err := os.ReadDir(p)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list the pods' cgroups: %w", err)
			}
			for _, e := range entries {
				if uid, ok := d.layout.uid(class, e.Name()); ok && e.IsDir() {
					seen[uid] = true
				}
			}
		}
	}
	out := make([]types.UID, 0, len(seen))
	for uid := range seen {
		out = append(out, uid)
	}
	slices.Sort(out)
	return out, nil
}
