// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// claims are bound to volumes of their own name.
type claims struct {
	bound map[string]*corev1.PersistentVolume
	asked int
}

func (c *claims) Claim(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim,
	*corev1.PersistentVolume, error) {
	c.asked++
	pv, ok := c.bound[name]
	if !ok {
		return nil, nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "c"}}
	if pv != nil {
		pv.Name, pv.Spec.ClaimRef = "pv-"+name, &corev1.ObjectReference{UID: "c"}
		claim.Spec.VolumeName, claim.Status.Phase = pv.Name, corev1.ClaimBound
	}
	return claim, pv, nil
}

func claimVolume(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

func localPV(path string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}}}
}

// TestClaimVolumes proves WL-15 and WL-17 on the node: a claim's volume is mounted for the pod, its files are the
// fsGroup's, subPath and readOnly are honoured, and nothing of it goes when the pod does, nor is the API asked twice.
func TestClaimVolumes(t *testing.T) {
	needsRoot(t)
	data := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(data, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "kept"), []byte("yes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(data, "link")); err != nil {
		t.Fatal(err)
	}
	m, _ := manager(t)
	all := &claims{bound: map[string]*corev1.PersistentVolume{"data": localPV(data)}}
	m.cfg.Claims = all
	pod := podWith(claimVolume("v", "data"))
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](4242)}
	pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = false
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: "v", MountPath: "/sub", SubPath: "sub", ReadOnly: true})
	for range 2 {
		prepare(t, m, pod)
	}
	if all.asked != 1 {
		t.Errorf("the API was asked %d times", all.asked)
	}
	mounts, err := m.Mounts(t.Context(), pod, &pod.Spec.Containers[0], nil)
	if err != nil || len(mounts) != 2 || mounts[0].Readonly || !mounts[1].Readonly {
		t.Fatalf("mounts %v, %v", mounts, err)
	}
	if got, err := os.ReadFile(filepath.Join(mounts[0].HostPath, "kept")); err != nil || string(got) != "yes" {
		t.Errorf("in the volume: %q, %v", got, err)
	}
	for path, want := range map[string]fs.FileMode{"": fs.ModeDir | fs.ModeSetgid | 0o770, "kept": 0o660,
		"sub": fs.ModeDir | fs.ModeSetgid | 0o770} {
		info, err := os.Stat(filepath.Join(data, path))
		if err != nil || info.Mode()&want != want || groupOf(info) != 4242 {
			t.Errorf("%q: %v of group %d, %v", path, info.Mode(), groupOf(info), err)
		}
	}
	if info, err := os.Stat("/etc/passwd"); err != nil || groupOf(info) == 4242 {
		t.Errorf("a symlink led out of the volume: %v", err)
	}
	if err := m.CleanUp(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(data, "kept")); err != nil || string(got) != "yes" {
		t.Errorf("after the pod: %q, %v", got, err)
	}
}

// TestOwnershipAfterStop proves WL-15: who is stopped between the mounting of a claim's volume and the last of its
// files being the fsGroup's, does the rest when called again.
func TestOwnershipAfterStop(t *testing.T) {
	needsRoot(t)
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m, _ := manager(t)
	m.cfg.Claims = &claims{bound: map[string]*corev1.PersistentVolume{"data": localPV(data)}}
	pod := podWith(claimVolume("v", "data"))
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](4242)}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := m.claim(stopped, pod, pod.Spec.Volumes[0]); err == nil {
		t.Fatal("the files were given to the group by who was stopped")
	}
	if there, err := isMounted(m.volumeDir(pod.UID, pod.Spec.Volumes[0])); err != nil || !there {
		t.Fatalf("mounted: %v, %v", there, err)
	}
	prepare(t, m, pod)
	if info, err := os.Stat(filepath.Join(data, "kept")); err != nil || groupOf(info) != 4242 {
		t.Errorf("group %d, %v", groupOf(info), err)
	}
	if err := m.CleanUp(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
}

// TestOwnershipKept proves WL-15: with OnRootMismatch a volume that was given to the group already is not gone through.
func TestOwnershipKept(t *testing.T) {
	needsRoot(t)
	dir := t.TempDir()
	if err := giveToGroup(t.Context(), dir, 4242, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	policy := ptr.To(corev1.FSGroupChangeOnRootMismatch)
	if err := giveToGroup(t.Context(), dir, 4242, policy); err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(dir, "f"), &st); err != nil || st.Mode&0o777 != 0o600 {
		t.Errorf("mode %o, %v", st.Mode, err)
	}
	if err := giveToGroup(t.Context(), dir, 4243, policy); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Stat(filepath.Join(dir, "f"), &st); err != nil || st.Gid != 4243 {
		t.Errorf("group %d, %v", st.Gid, err)
	}
}

// TestBlockDevice proves WL-17: a local volume of mode Block is a device of its containers.
func TestBlockDevice(t *testing.T) {
	const at = "/dev/loop0"
	if _, err := os.Stat(at); err != nil {
		t.Skip("there is no block device: ", err)
	}
	m, _ := manager(t)
	block := localPV(at)
	block.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	all := &claims{bound: map[string]*corev1.PersistentVolume{"block": block}}
	m.cfg.Claims = all
	pod := podWith(claimVolume("v", "block"))
	c := &pod.Spec.Containers[0]
	c.VolumeMounts, c.VolumeDevices = nil, []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/x"}}
	for range 2 {
		prepare(t, m, pod)
	}
	got, err := m.Devices(pod, c)
	if err != nil || len(got) != 1 || got[0].GetHostPath() != at || got[0].GetContainerPath() != "/dev/x" ||
		got[0].GetPermissions() != "mrw" {
		t.Errorf("%v, %v", got, err)
	}
	pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
	if got, err := m.Devices(pod, c); err != nil || got[0].GetPermissions() != "mr" {
		t.Errorf("read-only: %v, %v", got, err)
	}
	if err := m.CleanUp(t.Context(), pod.UID); err != nil || all.asked != 1 {
		t.Errorf("%v; asked %d times", err, all.asked)
	}
}

// TestClaimRefused proves WL-15 and WL-17: what keeps a claim's volume from being mounted is said.
func TestClaimRefused(t *testing.T) {
	m, _ := manager(t)
	block := localPV("/nowhere")
	block.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	other := localPV("")
	other.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
		ISCSI: &corev1.ISCSIPersistentVolumeSource{}}
	m.cfg.Claims = &claims{bound: map[string]*corev1.PersistentVolume{"unbound": nil, "nowhere": localPV("/nowhere"),
		"block": block, "other": other}}
	for claim, want := range map[string]string{
		"none":    `persistentvolumeclaim "none" not found`,
		"unbound": `is not bound to a volume yet: kubectl describe pvc unbound says why`,
		"nowhere": `path "/nowhere" does not exist on the node`,
		"block":   `has volumeMode Block, but is specified in volumeMounts`,
		"other":   `this node mounts volumes of the kinds local, hostPath, nfs and csi`,
	} {
		err := m.Prepare(t.Context(), podWith(claimVolume("v", claim)))
		if fails := Failures(err); len(fails) != 1 || !strings.Contains(fails[0].Error(), want) {
			t.Errorf("claim %s: %v, want %q", claim, err, want)
		}
	}
	device := podWith(claimVolume("v", "block"))
	device.Spec.Containers[0].VolumeMounts = nil
	device.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/x"}}
	if err := m.Prepare(t.Context(), device); err == nil ||
		!strings.Contains(err.Error(), `volume "v": stat /nowhere: no such file or directory`) {
		t.Errorf("a device that is not there: %v", err)
	}
	device.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "nowhere"
	if err := m.Prepare(t.Context(), device); err == nil ||
		!strings.Contains(err.Error(), "has volumeMode Filesystem, but is specified in volumeDevices") {
		t.Errorf("a file system as a device: %v", err)
	}
	ephemeral := podWith(corev1.Volume{Name: "e", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{}}})
	m.cfg.Claims = &claims{bound: map[string]*corev1.PersistentVolume{"web-e": localPV("/nowhere")}}
	if err := m.Prepare(t.Context(), ephemeral); err == nil || !strings.Contains(err.Error(), "pod is not owner") {
		t.Errorf("another's claim for an ephemeral volume: %v", err)
	}
	m.cfg.Claims = nil
	if err := m.Prepare(t.Context(), podWith(claimVolume("v", "x"))); err == nil ||
		!strings.Contains(err.Error(), "need an API server") {
		t.Errorf("without an API server: %v", err)
	}
}

// TestNFSArgs proves WL-17 for nfs: what the host's mount is told.
func TestNFSArgs(t *testing.T) {
	for want, args := range map[string][]string{
		"-t nfs -- files:/export /at": nfsArgs(&corev1.NFSVolumeSource{Server: "files",
			Path: "/export"}, nil, "/at"),
		"-t nfs -o ro,nfsvers=4.1 -- [fd00::1]:/ /at": nfsArgs(&corev1.NFSVolumeSource{Server: "fd00::1", Path: "/",
			ReadOnly: true}, []string{"nfsvers=4.1"}, "/at"),
	} {
		if got := strings.Join(args, " "); got != want || !slices.Contains(args, "--") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
