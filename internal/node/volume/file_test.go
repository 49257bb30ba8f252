// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// TestReadFile proves PL-27: files of an emptyDir are read, and nothing that a container may have put in their place.
func TestReadFile(t *testing.T) {
	m, _ := manager(t)
	pod := podWith(corev1.Volume{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		corev1.Volume{Name: "h", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}})
	if err := m.Prepare(context.Background(), pod); err != nil {
		t.Fatal(err)
	}
	dir := m.volumeDir(pod.UID, pod.Spec.Volumes[0])
	secret := filepath.Join(t.TempDir(), "secret")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "sub"), 0o755),
		os.WriteFile(filepath.Join(dir, "sub", "f"), []byte("A='1'"), 0o600),
		os.WriteFile(secret, []byte("A='secret'"), 0o600),
		os.Symlink(secret, filepath.Join(dir, "out")),
		os.Symlink("../../../../../../../../etc/hostname", filepath.Join(dir, "up")),
		os.Symlink("/sub/f", filepath.Join(dir, "in")),
		unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		os.Truncate(filepath.Join(dir, "sub", "f"), 5),
		os.WriteFile(filepath.Join(dir, "big"), make([]byte, fileMax+1), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"sub/f", "in"} {
		if got, err := m.ReadFile(pod, "e", path); string(got) != "A='1'" || err != nil {
			t.Errorf("PL-27 %s: %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"none", "sub/none", "out", "up"} { // a link out of the volume leads nowhere
		if got, err := m.ReadFile(pod, "e", path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("PL-27 %s: %q, %v", path, got, err)
		}
	}
	for path, want := range map[string]string{"pipe": "not a regular file", "sub": "not a regular file", "big": "more than"} {
		if got, err := m.ReadFile(pod, "e", path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("PL-27 %s: %q, %v", path, got, err)
		}
	}
	for _, volume := range []string{"h", "other"} {
		if _, err := m.ReadFile(pod, volume, "hostname"); err == nil {
			t.Errorf("PL-27 volume %s is read", volume)
		}
	}
}
