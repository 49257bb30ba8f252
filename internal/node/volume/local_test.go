// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// TestLocalMountOptions proves WL-17: a local volume is mounted with the options that its PersistentVolume names, and one
// that its file system does not know is told of; a hostPath one has none.
func TestLocalMountOptions(t *testing.T) {
	needsRoot(t)
	m, _ := manager(t)
	with := func(pv *corev1.PersistentVolume, options ...string) *corev1.PersistentVolume {
		pv.Spec.MountOptions = options
		return pv
	}
	host := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: t.TempDir()}}}}
	m.cfg.Claims = &claims{bound: map[string]*corev1.PersistentVolume{"noexec": with(localPV(t.TempDir()), "noexec", "nosuid"),
		"device": with(localPV(loopDevice(t)), "noexec", "data=ordered"), "nonsense": with(localPV(loopDevice(t)), "vers=4"),
		"host": with(host, "ro")}}
	for _, claim := range []string{"noexec", "device"} {
		pod := podWith(claimVolume("v", claim))
		pod.UID = types.UID(claim)
		prepare(t, m, pod)
		var is unix.Statfs_t
		if err := unix.Statfs(m.volumeDir(pod.UID, pod.Spec.Volumes[0]), &is); err != nil || is.Flags&unix.ST_NOEXEC == 0 ||
			is.Flags&unix.ST_RDONLY != 0 {
			t.Errorf("%s: flags %x, %v", claim, is.Flags, err)
		}
		if err := m.CleanUp(t.Context(), pod.UID); err != nil {
			t.Error(err)
		}
	}
	for claim, want := range map[string]string{"nonsense": "vers=4", "host": "mount options are not supported for this volume type"} {
		pod := podWith(claimVolume("v", claim))
		for range 2 { // also when it is tried again
			if err := m.Prepare(t.Context(), pod); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", claim, err, want)
			}
		}
		if err := m.CleanUp(t.Context(), pod.UID); err != nil {
			t.Error(err)
		}
	}
}

// TestReadOnlySubPath proves PL-05 and WL-17: of a claim that may only be read no folder is made for a subPath that does
// not exist: the container is refused as by a kubelet, whose mount is read-only too.
func TestReadOnlySubPath(t *testing.T) {
	needsRoot(t)
	data := t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "there"), 0o755); err != nil {
		t.Fatal(err)
	}
	m, _ := manager(t)
	m.cfg.Claims = &claims{bound: map[string]*corev1.PersistentVolume{"data": localPV(data)}}
	pod := podWith(claimVolume("v", "data"))
	pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
	pod.Spec.Containers[0].VolumeMounts[0].SubPath = "there"
	prepare(t, m, pod)
	if mounts, err := m.Mounts(t.Context(), pod, &pod.Spec.Containers[0], nil); err != nil || !mounts[0].Readonly {
		t.Errorf("one that is there: %v, %v", mounts, err)
	}
	pod.Spec.Containers[0].VolumeMounts[0].SubPath = "missing"
	_, err := m.Mounts(t.Context(), pod, &pod.Spec.Containers[0], nil)
	if err == nil || !strings.Contains(err.Error(), `failed to create subPath directory for volumeMount "v"`) ||
		!strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("one that is missing: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(data, "missing")); err == nil {
		t.Error("the folder was made in a volume that may only be read")
	}
	if err := m.CleanUp(t.Context(), pod.UID); err != nil {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(data, "later"), 0o755); err != nil {
		t.Errorf("the volume itself has become read-only: %v", err)
	}
}

// TestLocalDeviceGetsFileSystem proves WL-17: a device with nothing on it is given a file system, once; one with
// something on it never.
func TestLocalDeviceGetsFileSystem(t *testing.T) {
	needsRoot(t)
	m, _ := manager(t)
	device := loopDevice(t)
	m.cfg.Claims = &claims{bound: map[string]*corev1.PersistentVolume{"new": localPV(device)}}
	reader := podWith(claimVolume("v", "new"))
	reader.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
	if err := m.Prepare(t.Context(), reader); err == nil || !strings.Contains(err.Error(), "mounting "+device+" as ext4") {
		t.Errorf("for who may only read: %v", err)
	}
	for i, uid := range []types.UID{"first", "second"} {
		pod := podWith(claimVolume("v", "new"))
		pod.UID = uid
		prepare(t, m, pod)
		kept := filepath.Join(m.volumeDir(uid, pod.Spec.Volumes[0]), "kept")
		if i == 0 {
			if err := os.WriteFile(kept, []byte("yes"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(kept); err != nil || string(got) != "yes" {
			t.Errorf("%s: %q, %v", uid, got, err)
		}
		if err := m.CleanUp(t.Context(), uid); err != nil {
			t.Fatal(err)
		}
	}
	other := localPV(device)
	other.Spec.Local.FSType = ptr.To("xfs")
	m.cfg.Claims = &claims{bound: map[string]*corev1.PersistentVolume{"new": other}}
	pod := podWith(claimVolume("v", "new"))
	if err := m.Prepare(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "which fsType has to name") {
		t.Errorf("with another file system on it: %v", err)
	}
	if out, err := exec.CommandContext(t.Context(), "blkid", "-p", "-s", "TYPE", "-o", "value", device).Output(); strings.TrimSpace(string(out)) != "ext4" {
		t.Errorf("on the device is %q, %v", out, err)
	}
}

// TestUnreadableDevice proves WL-17: a device that cannot be read, or not all of it, is not taken for blank, though
// blkid says the same of it; nothing is written there. Nor is one that may only be read given a file system.
func TestUnreadableDevice(t *testing.T) {
	needsRoot(t)
	for _, c := range []struct {
		name    string
		whole   bool
		left    int64 // of the 64 MiB, how much can be read
		options []string
		want    string
	}{
		{"none of it", false, 0, nil, "input/output error"},
		{"none of it, with options", false, 0, []string{"noexec"}, "whether anything is on it is not known"},
		{"not its end, with options", false, 32 << 20, []string{"noexec"}, "whether anything is on it is not known"},
		{"not its end", false, 32 << 20, nil, "whether anything is on it is not known"},
		{"all of it, to read only", true, 64 << 20, []string{"noexec,ro"}, "mounting /dev/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := manager(t)
			device, image := loopDeviceOf(t)
			if err := os.Truncate(image, c.left); err != nil { // what is gone cannot be read
				t.Fatal(err)
			}
			pv := localPV(device)
			pv.Spec.MountOptions = c.options
			m.cfg.Claims = &claims{bound: map[string]*corev1.PersistentVolume{"data": pv}}
			pod := podWith(claimVolume("v", "data"))
			for range 2 {
				if err := m.Prepare(t.Context(), pod); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
			if blank, err := isBlank(t.Context(), device); blank != c.whole || (err == nil) != c.whole {
				t.Errorf("it is blank: %t, %v", blank, err)
			}
			if is, err := os.Stat(image); err != nil || is.Sys().(*syscall.Stat_t).Blocks != 0 {
				t.Errorf("something was written: %v, %v", is, err)
			}
			if err := m.CleanUp(t.Context(), pod.UID); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBlank proves WL-17: what can be read of a device counts, at both of its ends, and also what stands in between.
func TestBlank(t *testing.T) {
	needsRoot(t)
	device, image := loopDeviceOf(t)
	is := func(want bool) {
		t.Helper()
		if blank, err := isBlank(t.Context(), device); blank != want || err != nil {
			t.Errorf("it is blank: %t, %v; want %t", blank, err, want)
		}
	}
	is(true)
	write := func(at int64, text string) {
		t.Helper()
		f, err := os.OpenFile(device, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	write(4<<20, "what has no name") // as the kubelet sees it
	is(true)
	write(64<<10+64, "_BHRfS_M") // the beginning of btrfs
	is(false)
	// What was read is what counts, whatever is read later.
	f, err := os.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	copied, err := edges(f, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	write(64<<10+64, strings.Repeat("\x00", 8))
	if found, err := finds(t.Context(), copied); !found || err != nil {
		t.Errorf("in what was read: %t, %v", found, err)
	}
}

// TestMountedHalf proves WL-17: a volume that whoever mounted it left without its options, or open to writing, has what
// is missing when it is tried again; and what is mounted below it has so, too.
func TestMountedHalf(t *testing.T) {
	needsRoot(t)
	for name, c := range map[string]struct {
		device, readOnly bool
		options          []string
		want             int64
	}{
		"options":   {false, false, []string{"noexec,exec", "noexec", "nosuid"}, unix.ST_NOEXEC | unix.ST_NOSUID},
		"sealed":    {false, true, nil, unix.ST_RDONLY},
		"both":      {false, true, []string{"noexec"}, unix.ST_RDONLY | unix.ST_NOEXEC},
		"a device":  {true, true, nil, unix.ST_RDONLY},
		"no limits": {false, false, []string{"noexec,exec"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := manager(t)
			data := t.TempDir()
			if err := unix.Mount("none", data, "tmpfs", 0, ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(data, unix.MNT_DETACH) })
			below := filepath.Join(data, "below")
			if err := os.Mkdir(below, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("none", below, "tmpfs", 0, ""); err != nil {
				t.Fatal(err)
			}
			pv := localPV(data)
			if c.device {
				pv = localPV(loopDevice(t))
			}
			pv.Spec.MountOptions = c.options
			m.cfg.Claims = &claims{bound: map[string]*corev1.PersistentVolume{"data": pv}}
			pod := podWith(claimVolume("v", "data"))
			pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = c.readOnly
			dir := m.volumeDir(pod.UID, pod.Spec.Volumes[0])
			if c.device {
				if err := os.MkdirAll(dir, 0o750); err != nil {
					t.Fatal(err)
				}
				if err := mountDevice(t.Context(), pv.Spec.Local.Path, "ext4", nil, false, dir); err != nil {
					t.Fatal(err)
				}
			} else if err := bindPath(data, dir); err != nil {
				t.Fatal(err)
			}
			prepare(t, m, pod)
			places := []string{dir}
			if !c.device {
				places = append(places, filepath.Join(dir, "below"))
			}
			const all = unix.ST_RDONLY | unix.ST_NOEXEC | unix.ST_NOSUID
			for _, at := range places {
				var is unix.Statfs_t
				if err := unix.Statfs(at, &is); err != nil || is.Flags&all != c.want {
					t.Errorf("%s: flags %x, %v; want %x", at, is.Flags&all, err, c.want)
				}
			}
			if err := m.CleanUp(t.Context(), pod.UID); err != nil {
				t.Error(err)
			}
			if err := os.WriteFile(filepath.Join(below, "later"), nil, 0o600); err != nil {
				t.Errorf("the volume itself has lost something: %v", err)
			}
		})
	}
}

// loopDevice is a block device with nothing on it.
func loopDevice(t *testing.T) string {
	t.Helper()
	device, _ := loopDeviceOf(t)
	return device
}

// loopDeviceOf is a block device of 64 MiB with nothing on it, and the file behind it.
func loopDeviceOf(t *testing.T) (device, image string) {
	t.Helper()
	image = filepath.Join(t.TempDir(), "image")
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(64 << 20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	out, err := exec.CommandContext(t.Context(), "losetup", "--find", "--show", image).CombinedOutput()
	if err != nil {
		t.Skipf("this machine has no loop devices: %v: %s", err, out)
	}
	device = strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return device, image
}
