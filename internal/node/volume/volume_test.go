// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// sources are objects in memory.
type sources struct {
	mu         sync.Mutex
	configMaps map[string]map[string]string
	secrets    map[string]map[string]string
	token      string
	waited     []bool // whether certificates were waited for
	err        error
}

func (s *sources) ConfigMap(_ context.Context, ns, name string) (*corev1.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.configMaps[ns+"/"+name]
	if s.err != nil || !ok {
		return nil, s.orNotFound("configmaps", name)
	}
	return &corev1.ConfigMap{Data: data, BinaryData: map[string][]byte{}}, nil
}

func (s *sources) Secret(_ context.Context, ns, name string) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.secrets[ns+"/"+name]
	if s.err != nil || !ok {
		return nil, s.orNotFound("secrets", name)
	}
	out := &corev1.Secret{Data: map[string][]byte{}}
	for k, v := range data {
		out.Data[k] = []byte(v)
	}
	return out, nil
}

func (s *sources) orNotFound(resource, name string) error {
	if s.err != nil {
		return s.err
	}
	return apierrors.NewNotFound(corev1.Resource(resource), name)
}

func (s *sources) ServiceAccountToken(_ context.Context, pod *corev1.Pod, p *corev1.ServiceAccountTokenProjection) (string, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token + " for " + pod.Name + " to " + p.Audience, time.Now().Add(time.Hour), s.err
}

func (s *sources) TrustBundle(_ context.Context, p *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []byte("bundle " + ptr.Deref(p.Name, "")), s.err
}

func (s *sources) PodCertificate(_ context.Context, pod *corev1.Pod, volume string, source int, wait bool) (key, chain []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waited = append(s.waited, wait)
	return fmt.Appendf(nil, "key of %s/%s/%d;", pod.Name, volume, source), []byte("chain " + s.token), s.err
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts and owners")
	}
}

// manager has a Root of its own; whatever is mounted below it at the end of the test is unmounted.
func manager(t *testing.T) (*Manager, *sources) {
	t.Helper()
	s := &sources{configMaps: map[string]map[string]string{}, secrets: map[string]map[string]string{}, token: "t1"}
	m := New(Config{Root: filepath.Join(t.TempDir(), "pods"), Sources: s})
	t.Cleanup(func() {
		if err := unmountBelow(context.Background(), m.cfg.Root); err != nil {
			t.Error(err)
		}
	})
	return m, s
}

// podWith has one container that mounts every volume at /v/<name>.
func podWith(volumes ...corev1.Volume) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "uid-1", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Volumes: volumes, Containers: []corev1.Container{{Name: "main"}}},
	}
	for _, v := range volumes {
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/v/" + v.Name})
	}
	return pod
}

func configMapVolume(name, cm string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: cm}, Items: items}}}
}

func secretVolume(name, secret string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: items}}}
}

func emptyDirVolume(name string, medium corev1.StorageMedium) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
}

func hostPathVolume(name, path string, kind corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}}
}

// seen lists the files that a reader of the volume finds, as "path mode contents", without the versions.
func seen(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	var walk func(rel string)
	walk = func(rel string) {
		entries, err := os.ReadDir(filepath.Join(dir, rel))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := filepath.Join(rel, e.Name())
			if strings.HasPrefix(name, "..") {
				continue
			}
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if info.IsDir() {
				walk(name)
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s %04o %s", name, info.Mode().Perm(), data))
		}
	}
	walk("")
	slices.Sort(out)
	return out
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := seen(t, dir); !slices.Equal(got, want) {
		t.Errorf("in %s:\ngot  %q\nwant %q", dir, got, want)
	}
}

func prepare(t *testing.T, m *Manager, pod *corev1.Pod) {
	t.Helper()
	if err := m.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// TestFiles proves PL-05: what configMap, secret, downwardAPI and projected volumes show, with items, modes and optional parts.
func TestFiles(t *testing.T) {
	needsRoot(t)
	m, s := manager(t)
	s.configMaps["ns/settings"] = map[string]string{"level": "debug", "color": "red"}
	s.secrets["ns/keys"] = map[string]string{"token": "s3cret", "other": "x"}
	optional := configMapVolume("gone", "none")
	optional.ConfigMap.Optional = ptr.To(true)
	someKeys := configMapVolume("some", "settings", corev1.KeyToPath{Key: "level", Path: "a/b/level"}, corev1.KeyToPath{Key: "no", Path: "no"})
	someKeys.ConfigMap.Optional = ptr.To(true)
	modes := secretVolume("modes", "keys", corev1.KeyToPath{Key: "token", Path: "t", Mode: ptr.To[int32](0o400)}, corev1.KeyToPath{Key: "other", Path: "o"})
	modes.Secret.DefaultMode = ptr.To[int32](0o640)
	down := corev1.Volume{Name: "down", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
		{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
		{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		{Path: "res/cpu", ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "main", Resource: "requests.cpu"}, Mode: ptr.To[int32](0o444)},
	}}}}
	all := corev1.Volume{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Items: []corev1.KeyToPath{{Key: "token", Path: "s/token"}}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: down.DownwardAPI.Items[:1]}},
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "vault"}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Optional: ptr.To(true)}},
	}}}}
	pod := podWith(configMapVolume("cm", "settings"), secretVolume("secret", "keys"), optional, someKeys, modes, down, all)
	for range 2 { // PL-05: doing it again is harmless
		prepare(t, m, pod)
		at := func(kind, name string) string {
			return filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~"+kind, name)
		}
		wantFiles(t, at("configmap", "cm"), "color 0644 red", "level 0644 debug")
		wantFiles(t, at("secret", "secret"), "other 0644 x", "token 0644 s3cret")
		wantFiles(t, at("configmap", "gone"))
		wantFiles(t, at("configmap", "some"), "a/b/level 0644 debug")
		wantFiles(t, at("secret", "modes"), "o 0640 x", "t 0400 s3cret")
		wantFiles(t, at("downward-api", "down"), "labels 0644 app=\"web\"", "name 0644 web", "res/cpu 0444 0")
		wantFiles(t, at("projected", "all"), "color 0644 red", "level 0644 debug", "name 0644 web", "s/token 0644 s3cret", "token 0644 t1 for web to vault")
		var st unix.Statfs_t
		if err := unix.Statfs(at("secret", "secret"), &st); err != nil || st.Type != unix.TMPFS_MAGIC {
			t.Errorf("PL-05 a secret lies on %#x, not on tmpfs (%v)", st.Type, err)
		}
		if target, err := os.Readlink(filepath.Join(at("configmap", "cm"), "level")); target != "..data/level" {
			t.Error("PL-05 layout:", target, err)
		}
	}
	mounts, err := mountsBelow(m.cfg.Root)
	if err != nil || len(mounts) != 3 {
		t.Errorf("mounts %q, %v", mounts, err)
	}
}

// TestMissing proves PL-05 and PL-15: what is missing is named in the kubelet's words, the rest is set up all the same.
func TestMissing(t *testing.T) {
	m, s := manager(t)
	s.configMaps["ns/settings"] = map[string]string{"level": "debug"}
	iscsi := corev1.Volume{Name: "iscsi", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}}
	unused := podWith(configMapVolume("unused", "none"))
	unused.Spec.Containers[0].VolumeMounts = nil
	prepare(t, m, unused)
	for want, pod := range map[string]*corev1.Pod{
		`MountVolume.SetUp failed for volume "v" : configmap "none" not found`:                                                      podWith(configMapVolume("v", "none")),
		`MountVolume.SetUp failed for volume "v" : secret "none" not found`:                                                         podWith(secretVolume("v", "none")),
		`MountVolume.SetUp failed for volume "v" : configmap "settings" references non-existent config key: colour (it has: level)`: podWith(configMapVolume("v", "settings", corev1.KeyToPath{Key: "colour", Path: "x"})),
		`MountVolume.SetUp failed for volume "v" : file path "../x" is not allowed: it must be relative, without ..`:                podWith(configMapVolume("v", "settings", corev1.KeyToPath{Key: "level", Path: "../x"})),
		`MountVolume.SetUp failed for volume "iscsi" : this kind of volume is not supported yet`:                                    podWith(iscsi),
	} {
		ok := configMapVolume("ok", "settings")
		pod.Spec.Volumes = append(pod.Spec.Volumes, ok)
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "ok", MountPath: "/ok"})
		err := m.Prepare(t.Context(), pod)
		fails := Failures(err)
		if len(fails) != 1 || !strings.HasPrefix(fails[0].Error(), want) || fails[0].Reason() != "FailedMount" {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if strings.Contains(want, "not found") != apierrors.IsNotFound(fails[0].Err) {
			t.Errorf("IsNotFound of %v", err)
		}
		wantFiles(t, filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~configmap/ok"), "level 0644 debug")
	}
}

// TestRefresh proves PL-05: files follow their objects, and the last contents stay when an object is gone or out of reach.
func TestRefresh(t *testing.T) {
	needsRoot(t)
	m, s := manager(t)
	s.configMaps["ns/settings"] = map[string]string{"level": "debug", "old": "x"}
	optional := configMapVolume("opt", "settings")
	optional.ConfigMap.Optional = ptr.To(true)
	token := corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}
	pod := podWith(configMapVolume("cm", "settings"), optional, token, emptyDirVolume("scratch", ""))
	prepare(t, m, pod)
	at := func(v string) string { return filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~"+v) }
	refresh := func(want bool, failures int) {
		t.Helper()
		changed, err := m.Refresh(t.Context(), pod)
		if changed != want || len(Failures(err)) != failures {
			t.Errorf("changed %v, want %v; %v", changed, want, err)
		}
	}
	refresh(false, 0)

	s.configMaps["ns/settings"] = map[string]string{"level": "info", "new": "y"}
	refresh(true, 0)
	wantFiles(t, at("configmap/cm"), "level 0644 info", "new 0644 y")

	s.token = "t2"
	refresh(true, 0)
	wantFiles(t, at("projected/token"), "token 0644 t2 for web to ")

	delete(s.configMaps, "ns/settings")
	refresh(true, 1) // the optional one is emptied
	wantFiles(t, at("configmap/cm"), "level 0644 info", "new 0644 y")
	wantFiles(t, at("configmap/opt"))

	s.err = fmt.Errorf("the API server is away")
	refresh(false, 3)
	wantFiles(t, at("configmap/cm"), "level 0644 info", "new 0644 y")
}

// TestFSGroup proves PL-05 and PL-07: the group owns and reads, new files inherit it, a token belongs to who runs.
func TestFSGroup(t *testing.T) {
	needsRoot(t)
	m, s := manager(t)
	s.secrets["ns/keys"] = map[string]string{"token": "s3cret"}
	secret := secretVolume("secret", "keys")
	secret.Secret.DefaultMode = ptr.To[int32](0o400)
	token := corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}
	pod := podWith(secret, token, emptyDirVolume("disk", ""), emptyDirVolume("mem", corev1.StorageMediumMemory))
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](4242), RunAsUser: ptr.To[int64](1234)}
	prepare(t, m, pod)
	prepare(t, m, pod)
	for name, want := range map[string]string{
		"empty-dir/disk":        "dgrwxrwxrwx 0 4242",
		"empty-dir/mem":         "dgtrwxrwxrwx 0 4242",
		"secret/secret":         "dgrwxr-xr-x 0 4242",
		"secret/secret/token":   "-r--r----- 0 4242",
		"projected/token/token": "-rw-r----- 1234 4242",
	} {
		info, err := os.Stat(filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~"+name))
		if err != nil {
			t.Fatal(err)
		}
		uid, gid := ownerOf(info)
		if got := fmt.Sprint(info.Mode(), uid, gid); got != want {
			t.Errorf("PL-07 %s: got %s, want %s", name, got, want)
		}
	}
	if err := os.Mkdir(filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~empty-dir/disk/sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~empty-dir/disk/sub"))
	if err != nil {
		t.Fatal(err)
	}
	if _, gid := ownerOf(info); gid != 4242 || info.Mode()&fs.ModeSetgid == 0 {
		t.Error("PL-07 a new folder is not the group's:", gid, info.Mode())
	}
	// A folder that is made for a subPath is as its volume is, with all its bits.
	for name, want := range map[string]string{"disk": "dgrwxrwxrwx 0 4242", "mem": "dgtrwxrwxrwx 0 4242"} {
		c := pod.Spec.Containers[0]
		c.VolumeMounts = []corev1.VolumeMount{{Name: name, MountPath: "/x", SubPath: "made/test-sub"}}
		mounts, err := m.Mounts(t.Context(), pod, &c, nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(mounts[0].HostPath)
		if err != nil {
			t.Fatal(err)
		}
		uid, gid := ownerOf(info)
		if got := fmt.Sprint(info.Mode(), uid, gid); got != want {
			t.Errorf("PL-07 subPath of %s: got %s, want %s", name, got, want)
		}
	}
}

// TestTokenUser proves PL-07: a token file has an owner only if all containers agree on one.
func TestTokenUser(t *testing.T) {
	sc := func(uid int64) *corev1.SecurityContext { return &corev1.SecurityContext{RunAsUser: &uid} }
	for name, c := range map[string]struct {
		pod  *int64
		main []*corev1.SecurityContext
		want *int64
	}{
		"nothing said":     {nil, []*corev1.SecurityContext{nil}, nil},
		"the pod's":        {ptr.To[int64](1), []*corev1.SecurityContext{nil, nil}, ptr.To[int64](1)},
		"the containers'":  {nil, []*corev1.SecurityContext{sc(2), sc(2)}, ptr.To[int64](2)},
		"one overrides":    {ptr.To[int64](1), []*corev1.SecurityContext{nil, sc(2)}, nil},
		"one says nothing": {nil, []*corev1.SecurityContext{sc(2), nil}, nil},
	} {
		pod := podWith()
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: c.pod}
		pod.Spec.Containers = nil
		for _, s := range c.main {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{SecurityContext: s})
		}
		if got := tokenUser(pod); !ptr.Equal(got, c.want) {
			t.Errorf("PL-07 %s: %v", name, got)
		}
	}
}
