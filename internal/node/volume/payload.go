// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/env"
	"github.com/wherryproject/wherry/internal/podspec"
)

// file is one file of a volume as it is to be seen.
type file struct {
	data []byte
	mode fs.FileMode // permission bits
	uid  *int64      // owner if not root
}

// payload is all that a volume is to show, by path below it.
type payload map[string]file

// configData are all keys of a ConfigMap; a key stands in one of its two maps only.
func configData(cm *corev1.ConfigMap) map[string][]byte {
	out := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for k, v := range cm.Data {
		out[k] = []byte(v)
	}
	maps.Copy(out, cm.BinaryData)
	return out
}

// selection is how a volume shows the keys of a ConfigMap or Secret.
type selection struct {
	kind        string // "configmap" or "secret", for messages
	name        string
	items       []corev1.KeyToPath // none means every key under its own name
	defaultMode int32
	optional    bool
}

// pick puts the selected keys into the payload. A key that is not there is an error unless the selection is optional.
func (p payload) pick(data map[string][]byte, s selection) error {
	if len(s.items) == 0 {
		for k, v := range data {
			if err := p.add(k, file{data: v, mode: perm(s.defaultMode)}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, item := range s.items {
		v, ok := data[item.Key]
		if !ok {
			if s.optional {
				continue
			}
			word := s.kind
			if s.kind == "configmap" {
				word = "config"
			}
			return fmt.Errorf("%s %q references non-existent %s key: %s (it has: %s)", s.kind, s.name, word, item.Key,
				strings.Join(slices.Sorted(maps.Keys(data)), ", "))
		}
		mode := s.defaultMode
		if item.Mode != nil {
			mode = *item.Mode
		}
		if err := p.add(item.Path, file{data: v, mode: perm(mode)}); err != nil {
			return err
		}
	}
	return nil
}

// downward puts fields of the pod into the payload.
func (p payload) downward(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, defaultMode int32,
	allocatable corev1.ResourceList) error {
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = env.FieldValue(pod, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, err = env.ResourceValue(pod, "", item.ResourceFieldRef, allocatable)
		default:
			err = fmt.Errorf("it has neither fieldRef nor resourceFieldRef")
		}
		if err != nil {
			return fmt.Errorf("downwardAPI item %s: %w", item.Path, err)
		}
		mode := defaultMode
		if item.Mode != nil {
			mode = *item.Mode
		}
		if err := p.add(item.Path, file{data: []byte(value), mode: perm(mode)}); err != nil {
			return err
		}
	}
	return nil
}

// add refuses paths that lead out of the volume or into the names kept for the versions; a later file hides an earlier
// one.
func (p payload) add(name string, f file) error {
	clean := path.Clean(name)
	if name == "" || path.IsAbs(name) || clean == "." || strings.HasPrefix(clean, "..") ||
		slices.Contains(strings.Split(name, "/"), "..") {
		return fmt.Errorf("file path %q is not allowed: it must be relative, without .., and must not start with two dots", name)
	}
	p[clean] = f
	return nil
}

// check finds a file that stands where another needs a folder.
func (p payload) check() error {
	for name := range p {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := p[dir]; ok {
				return fmt.Errorf("file path %q is also the folder of %q", dir, name)
			}
		}
	}
	return nil
}

// tops are the names that stand at the root of the volume.
func (p payload) tops() map[string]bool {
	out := map[string]bool{}
	for name := range p {
		top, _, _ := strings.Cut(name, "/")
		out[top] = true
	}
	return out
}

func perm(mode int32) fs.FileMode { return fs.FileMode(mode) & fs.ModePerm }

// modeOr is the mode given, or what Kubernetes takes: 0644.
func modeOr(given *int32) int32 {
	if given == nil {
		return corev1.ConfigMapVolumeSourceDefaultMode
	}
	return *given
}

// tokenUser is the user that a token file is given to: the one all containers of the pod run as, nil if they differ or
// if it is not set.
func tokenUser(pod *corev1.Pod) *int64 {
	var base, user *int64
	if pod.Spec.SecurityContext != nil {
		base = pod.Spec.SecurityContext.RunAsUser
	}
	first := true
	same := func(sc *corev1.SecurityContext) bool {
		u := base
		if sc != nil && sc.RunAsUser != nil {
			u = sc.RunAsUser
		}
		if first {
			user, first = u, false
		}
		return u != nil && user != nil && *u == *user
	}
	for ref := range podspec.Containers(&pod.Spec) {
		if !same(ref.Container.SecurityContext) {
			return nil
		}
	}
	return user
}
