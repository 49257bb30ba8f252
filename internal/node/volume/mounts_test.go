// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
)

// TestMounts proves PL-05: what the runtime is told of read-only, recursion and propagation.
func TestMounts(t *testing.T) {
	m, s := manager(t)
	s.configMaps["ns/settings"] = map[string]string{"level": "debug"}
	host := t.TempDir()
	pod := podWith(configMapVolume("cm", "settings"), hostPathVolume("host", host, ""), emptyDirVolume("scratch", ""))
	prepare(t, m, pod)
	const private, slave, shared = runtimeapi.MountPropagation_PROPAGATION_PRIVATE, runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER, runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
	scratch := filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~empty-dir/scratch")
	rro := func(mode corev1.RecursiveReadOnlyMode) *corev1.RecursiveReadOnlyMode { return &mode }
	for name, c := range map[string]struct {
		mount     corev1.VolumeMount
		recursive bool // the runtime can
		want      *runtimeapi.Mount
		err       string
	}{
		"plain":            {mount: corev1.VolumeMount{Name: "scratch", MountPath: "/s"}, want: &runtimeapi.Mount{ContainerPath: "/s", HostPath: scratch, Propagation: private}},
		"relative path":    {mount: corev1.VolumeMount{Name: "scratch", MountPath: "s/"}, want: &runtimeapi.Mount{ContainerPath: "/s", HostPath: scratch, Propagation: private}},
		"read-only":        {mount: corev1.VolumeMount{Name: "scratch", MountPath: "/s", ReadOnly: true}, want: &runtimeapi.Mount{ContainerPath: "/s", HostPath: scratch, Readonly: true, Propagation: private}},
		"configMap":        {mount: corev1.VolumeMount{Name: "cm", MountPath: "/s"}, want: &runtimeapi.Mount{ContainerPath: "/s", HostPath: filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~configmap/cm"), Readonly: true, Propagation: private}},
		"slave":            {mount: corev1.VolumeMount{Name: "host", MountPath: "/s", MountPropagation: ptr.To(corev1.MountPropagationHostToContainer)}, want: &runtimeapi.Mount{ContainerPath: "/s", HostPath: host, Propagation: slave}},
		"shared":           {mount: corev1.VolumeMount{Name: "host", MountPath: "/s", MountPropagation: ptr.To(corev1.MountPropagationBidirectional)}, want: &runtimeapi.Mount{ContainerPath: "/s", HostPath: host, Propagation: shared}},
		"recursive":        {recursive: true, mount: corev1.VolumeMount{Name: "host", MountPath: "/s", ReadOnly: true, RecursiveReadOnly: rro("Enabled")}, want: &runtimeapi.Mount{ContainerPath: "/s", HostPath: host, Readonly: true, RecursiveReadOnly: true, Propagation: private}},
		"if possible, no":  {mount: corev1.VolumeMount{Name: "host", MountPath: "/s", ReadOnly: true, RecursiveReadOnly: rro("IfPossible")}, want: &runtimeapi.Mount{ContainerPath: "/s", HostPath: host, Readonly: true, Propagation: private}},
		"if possible, yes": {recursive: true, mount: corev1.VolumeMount{Name: "host", MountPath: "/s", ReadOnly: true, RecursiveReadOnly: rro("IfPossible")}, want: &runtimeapi.Mount{ContainerPath: "/s", HostPath: host, Readonly: true, RecursiveReadOnly: true, Propagation: private}},
		"recursive, cannot": {mount: corev1.VolumeMount{Name: "host", MountPath: "/s", ReadOnly: true, RecursiveReadOnly: rro("Enabled")},
			err: "failed to prepare the mount at /s of container main: recursiveReadOnly Enabled: the container runtime cannot"},
		"no such volume":  {mount: corev1.VolumeMount{Name: "nope", MountPath: "/s"}, err: `the pod has no volume "nope"`},
		"subPath with ..": {mount: corev1.VolumeMount{Name: "scratch", MountPath: "/s", SubPath: "a/../../b"}, err: "must not contain '..'"},
		"absolute":        {mount: corev1.VolumeMount{Name: "scratch", MountPath: "/s", SubPath: "/etc"}, err: "must be relative"},
		"unknown variable": {mount: corev1.VolumeMount{Name: "scratch", MountPath: "/s", SubPathExpr: "x-$(NO)"},
			err: `subPathExpr "x-$(NO)": missing value for "NO"`},
		"empty variable": {mount: corev1.VolumeMount{Name: "scratch", MountPath: "/s", SubPathExpr: "$(EMPTY)"},
			err: `subPathExpr "$(EMPTY)": missing value for "EMPTY"`},
	} {
		t.Run("PL-05 "+name, func(t *testing.T) {
			m.cfg.RecursiveReadOnly = c.recursive
			got, err := m.Mounts(t.Context(), pod, &corev1.Container{Name: "main", VolumeMounts: []corev1.VolumeMount{c.mount}}, []*runtimeapi.KeyValue{{Key: "EMPTY"}})
			if c.err != "" {
				var e *MountError
				if !errors.As(err, &e) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			if err != nil || len(got) != 1 || got[0].String() != c.want.String() {
				t.Errorf("got  %v, %v\nwant %v", got, err, c.want)
			}
		})
	}
}

// TestSubPath proves PL-05: what a subPath names is bound, whatever the container does to the volume; missing folders are made;
// no symlink leads out; a new attempt sees the file as it is then.
func TestSubPath(t *testing.T) {
	needsRoot(t)
	m, s := manager(t)
	s.configMaps["ns/settings"] = map[string]string{"level": "debug"}
	outside := t.TempDir()
	put(t, outside, "secret", "the host's")
	pod := podWith(configMapVolume("cm", "settings"), emptyDirVolume("scratch", ""))
	environment := []*runtimeapi.KeyValue{{Key: "POD", Value: []byte(pod.Name)}}
	prepare(t, m, pod)
	scratch := filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~empty-dir/scratch")
	bind := func(vm corev1.VolumeMount) (string, error) {
		c := pod.Spec.Containers[0]
		vm.MountPath = "/x"
		c.VolumeMounts = []corev1.VolumeMount{vm}
		got, err := m.Mounts(t.Context(), pod, &c, environment)
		if err != nil {
			return "", err
		}
		if want := filepath.Join(m.cfg.Root, "uid-1/volume-subpaths"); !strings.HasPrefix(got[0].HostPath, want) {
			t.Errorf("%s is not below %s", got[0].HostPath, want)
		}
		return got[0].HostPath, nil
	}
	read := func(name string) string {
		data, err := os.ReadFile(name)
		if err != nil {
			return err.Error()
		}
		return string(data)
	}

	at, err := bind(corev1.VolumeMount{Name: "cm", SubPath: "level"})
	if err != nil || read(at) != "debug" {
		t.Fatal(err, read(at))
	}
	s.configMaps["ns/settings"] = map[string]string{"level": "info"}
	if changed, err := m.Refresh(t.Context(), pod); !changed || err != nil {
		t.Error(err)
	}
	if read(at) != "debug" {
		t.Error("a subPath file changed under its container")
	}
	if at, err = bind(corev1.VolumeMount{Name: "cm", SubPath: "level"}); err != nil || read(at) != "info" {
		t.Error("the next attempt sees", read(at), err)
	}

	at, err = bind(corev1.VolumeMount{Name: "scratch", SubPathExpr: "logs/$(POD)"})
	if err != nil {
		t.Fatal(err)
	}
	put(t, at, "f", "x")
	if read(filepath.Join(scratch, "logs/web/f")) != "x" {
		t.Error("not the volume's folder")
	}
	if info, err := os.Stat(filepath.Join(scratch, "logs/web")); err != nil || info.Mode().Perm() != 0o777 {
		t.Error("a made folder has other permissions than the volume:", info, err)
	}

	// A link that leads out of the volume is refused, whether what it names is there or not; one that stays within is
	// followed, also where it names the volume by its place on the node.
	link(t, scratch, "abs", outside)
	link(t, scratch, "rel", "../../../../../../../../../.."+outside)
	link(t, scratch, "file", filepath.Join(outside, "secret"))
	link(t, scratch, "here", "logs")
	link(t, scratch, "loop", "loop")
	link(t, scratch, "up", "..")
	link(t, scratch, "nowhere", filepath.Join(outside, "none"))
	for sub, want := range map[string]string{"abs": "leads out of the volume", "rel": "leads out of the volume", "up": "leads out of the volume",
		"file": "leads out of the volume", "abs/secret": "leads out of the volume", "rel/secret": "leads out of the volume",
		"abs/new": "leads out of the volume", "nowhere": "no such file or directory", "nowhere/deeper": "no such file or directory", "loop": "too many"} {
		at, err := bind(corev1.VolumeMount{Name: "scratch", SubPath: sub})
		if err == nil {
			t.Errorf("subPath %s binds %s", sub, at)
		} else if text := err.Error(); !strings.Contains(text, want) || !strings.Contains(text, "subPath") || strings.Contains(text, outside) {
			t.Errorf("subPath %s: %v, want %q", sub, err, want)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside is changed: %v, %v", entries, err)
	}
	link(t, scratch, "round", filepath.Join(scratch, "logs"))
	if at, err := bind(corev1.VolumeMount{Name: "scratch", SubPath: "round/web/f"}); err != nil || read(at) != "x" {
		t.Error("an absolute symlink within the volume:", read(at), err)
	}
	if at, err := bind(corev1.VolumeMount{Name: "scratch", SubPath: "here/web/f"}); err != nil || read(at) != "x" {
		t.Error("a symlink within the volume:", read(at), err)
	}
	// A folder, then a file at the same mount, then again: the place for the bind is changed.
	for _, sub := range []string{"logs", "logs/web/f", "logs"} {
		if _, err := bind(corev1.VolumeMount{Name: "scratch", SubPath: sub}); err != nil {
			t.Error(sub, err)
		}
	}
	mounts, err := mountsBelow(filepath.Join(m.cfg.Root, "uid-1/volume-subpaths"))
	if err != nil || len(mounts) != 2 {
		t.Errorf("PL-10 earlier attempts left mounts: %q, %v", mounts, err)
	}
}
