// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/node/csi/csitest"
	"github.com/wherryproject/wherry/internal/node/csi/terms"
)

const driverName = "csi.test"

// world is a node with an API server that is a fake.
type world struct {
	t      *testing.T
	config Config
	client *fake.Clientset
	events chan string
	retry  chan types.UID
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{t: t, events: make(chan string, 100), retry: make(chan types.UID, 100),
		client: fake.NewClientset(append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n"}})...)}
	dir := t.TempDir()
	w.config = Config{NodeName: "n", Folder: filepath.Join(dir, "kubelet"), PodsFolder: filepath.Join(dir, "pods"),
		Boot: "1", Client: w.client, Patience: 200 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		InUse: func(ctx context.Context) (*corev1.Node, error) {
			return w.client.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{})
		},
		Token: func(_ context.Context, _ *corev1.Pod,
			p *corev1.ServiceAccountTokenProjection) (string, time.Time, error) {
			return "token-for-" + p.Audience, time.Unix(1, 0), nil
		},
		Changed: func() {}, Retry: func(uid types.UID) { w.retry <- uid },
		Event: func(_ *corev1.Pod, _, reason, message string) { w.events <- reason + ": " + message }}
	return w
}

// agent begins a process; what it returns ends it.
func (w *world) agent() (m *Manager, end func()) {
	w.t.Helper()
	m, err := New(w.config)
	w.must(err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	return m, func() { cancel(); <-done }
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// start has a driver registered.
func (w *world) start(d *csitest.Driver) {
	w.t.Helper()
	w.must(d.Start(filepath.Join(w.config.Folder, RegistryFolder)))
	if s := <-d.Told; !s.GetPluginRegistered() {
		w.t.Fatal("not registered: ", s.GetError())
	}
}

func (w *world) pod(uid string) *corev1.Pod {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Join(w.config.PodsFolder, uid), 0o750))
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p" + uid, UID: types.UID(uid)},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}}}
}

func volume() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: driverName, VolumeHandle: "h"}}}}
}

func object(change ...func(*storagev1.CSIDriverSpec)) *storagev1.CSIDriver {
	d := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driverName},
		Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}}
	for _, c := range change {
		c(&d.Spec)
	}
	return d
}

func request(pod *corev1.Pod, pv *corev1.PersistentVolume) Request {
	return Request{Pod: pod, Volume: &pod.Spec.Volumes[0], PV: pv}
}

func wantCalls(t *testing.T, d *csitest.Driver, want ...string) {
	t.Helper()
	if got := d.Calls(); !slices.Equal(got, want) {
		t.Errorf("the driver was asked to %q, want %q", got, want)
	}
}

// WL-17: a volume is staged once for all pods, unstaged after the last; nothing is asked for again, also by another
// process; what was asked for when the machine ran before is.
func TestStagedOnce(t *testing.T) {
	w := newWorld(t, object(), volume())
	d := csitest.New(driverName, spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	m, end := w.agent()
	w.start(d)
	defer func() { d.Stop() }()
	ctx := t.Context()
	a, b := w.pod("a"), w.pod("b")
	for _, pod := range []*corev1.Pod{a, b, a} {
		p, err := m.Publish(ctx, request(pod, volume()))
		w.must(err)
		if want := filepath.Join(w.config.Folder, "pods", string(pod.UID),
			"volumes/kubernetes.io~csi/pv/mount"); p.Path != want {
			t.Errorf("published at %s, want %s", p.Path, want)
		}
	}
	end()
	m, end = w.agent()
	<-d.Told
	_, err := m.Publish(ctx, request(b, volume()))
	w.must(err)
	w.must(m.Unpublish(ctx, "a"))
	wantCalls(t, d, "stage h", "publish h", "publish h", "unpublish h")
	w.must(m.Unpublish(ctx, "b"))
	w.must(m.Unpublish(ctx, "b"))
	wantCalls(t, d, "stage h", "publish h", "publish h", "unpublish h", "unpublish h", "unstage h")
	for _, folder := range []string{"pods/*", "plugins/kubernetes.io/csi/*/*"} {
		if left, _ := filepath.Glob(filepath.Join(w.config.Folder, folder)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}

	_, err = m.Publish(ctx, request(a, volume()))
	w.must(err)
	end()
	w.config.Boot = "2"
	m, end = w.agent()
	defer end()
	<-d.Told
	if _, has := m.Has("a", "v"); has {
		t.Error("a volume is there after the machine has started anew")
	}
	_, err = m.Publish(ctx, request(a, volume()))
	w.must(err)
	wantCalls(t, d, append(d.Calls()[:8], "unpublish h", "unstage h", "stage h", "publish h")...)
}

// WL-17: an agent that dies before the driver has answered asks again, and takes back what it may have got.
func TestDiesWhileAsking(t *testing.T) {
	for _, at := range []string{"stage", "publish", "unpublish", "unstage"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t, object(), volume())
			d := csitest.New(driverName, spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
			m, end := w.agent()
			w.start(d)
			defer func() { d.Stop() }()
			d.Fails = func(call string) error { // the answer is lost: the process is gone
				if call == at {
					return status.Error(codes.Unavailable, "lost")
				}
				return nil
			}
			pod := w.pod("a")
			_, err := m.Publish(t.Context(), request(pod, volume()))
			if err == nil {
				err = m.Unpublish(t.Context(), "a")
			}
			if err == nil || !strings.Contains(err.Error(), "code = Unavailable desc = lost") {
				t.Errorf("error %v", err)
			}
			end()
			d.Fails = nil
			m, end = w.agent()
			defer end()
			<-d.Told
			w.must(m.Unpublish(t.Context(), "a")) // the pod is not needed any more
			got := d.Calls()
			last := got[len(got)-1]
			if last != "unstage h" || at != "stage" && !slices.Contains(got, "unpublish h") {
				t.Errorf("the driver was asked to %q", got)
			}
			if entries, err := os.ReadDir(filepath.Join(w.config.PodsFolder, "a")); err != nil || len(entries) > 0 {
				t.Errorf("left in the pod's folder: %v, %v", entries, err)
			}
		})
	}
}

// WL-17: a pod that comes before the driver says which drivers there are, and is tried again when it has come; a
// driver that leaves is taken out of the node's objects.
func TestDriverComesAndGoes(t *testing.T) {
	w := newWorld(t, object(), volume())
	m, end := w.agent()
	defer end()
	other := csitest.New("other.test")
	w.start(other)
	defer func() { other.Stop() }()
	pod := w.pod("a")
	_, err := m.Publish(t.Context(), request(pod, volume()))
	if err == nil ||
		!strings.Contains(err.Error(), "driver name csi.test not found in the list of registered CSI drivers: "+
			"this node has other.test") {
		t.Errorf("without its driver: %v", err)
	}
	d := csitest.New(driverName)
	d.Node = &spec.NodeGetInfoResponse{NodeId: "id", MaxVolumesPerNode: 3,
		AccessibleTopology: &spec.Topology{Segments: map[string]string{"test/rack": "1"}}}
	w.start(d)
	if uid := <-w.retry; uid != "a" {
		t.Errorf("%s is tried again", uid)
	}
	_, err = m.Publish(t.Context(), request(pod, volume()))
	w.must(err)
	csinode, err := w.client.StorageV1().CSINodes().Get(t.Context(), "n", metav1.GetOptions{})
	w.must(err)
	if got := csinode.Spec.Drivers; len(got) != 2 || got[1].Name != driverName || got[1].NodeID != "id" ||
		*got[1].Allocatable.Count != 3 || !slices.Equal(got[1].TopologyKeys, []string{"test/rack"}) {
		t.Errorf("CSINode: %+v", got)
	}
	node, err := w.client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	w.must(err)
	if node.Labels["test/rack"] != "1" ||
		node.Annotations[terms.NodeIDs] != `{"csi.test":"id","other.test":"node-id"}` {
		t.Errorf("node: %v %v", node.Labels, node.Annotations)
	}
	changes, err := w.client.StorageV1().CSINodes().Watch(t.Context(), metav1.ListOptions{})
	w.must(err)
	d.Stop()
	for e := range changes.ResultChan() {
		if n := e.Object.(*storagev1.CSINode); len(n.Spec.Drivers) == 1 && n.Spec.Drivers[0].Name == "other.test" {
			changes.Stop()
		}
	}
	if err := m.Unpublish(t.Context(), "a"); err == nil ||
		!strings.Contains(err.Error(),
			"CSI driver csi.test is not registered on this node: the volume stays until it is") {
		t.Errorf("taken back without its driver: %v", err)
	}
	w.start(d)
	w.must(m.Unpublish(t.Context(), "a"))
}

// WL-17: plug-ins that are not taken are told why.
func TestNotTaken(t *testing.T) {
	w := newWorld(t)
	_, end := w.agent()
	defer end()
	for want, change := range map[string]func(*csitest.Driver){
		`plug-ins of type "DRAPlugin" are not supported here`: func(d *csitest.Driver) { d.Info.Type = "DRAPlugin" },
		"this node speaks version 1": func(d *csitest.Driver) {
			d.Info.SupportedVersions = []string{"0.3.0"}
		},
		`the endpoint "csi.sock" of driver`:      func(d *csitest.Driver) { d.Info.Endpoint = "csi.sock" },
		`"-bad" is not the name of a CSI driver`: func(d *csitest.Driver) { d.Info.Name = "-bad" },
	} {
		d := csitest.New(driverName)
		change(d)
		w.must(d.Start(filepath.Join(w.config.Folder, RegistryFolder)))
		if s := <-d.Told; s.GetPluginRegistered() || !strings.Contains(s.GetError(), want) {
			t.Errorf("told %v, want %q", s, want)
		}
		d.Stop()
	}
}

// WL-17: what the driver is told: secrets, the pod, tokens, the attachment; and it is asked again where it wants that.
func TestTold(t *testing.T) {
	pv := volume()
	pv.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: "s", Name: "stage"}
	pv.Spec.CSI.NodePublishSecretRef = &corev1.SecretReference{Namespace: "s", Name: "publish"}
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: name},
			Data: map[string][]byte{"key": []byte(name)}}
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	w := newWorld(t, pv, secret("stage"), secret("publish"), claim, object(func(s *storagev1.CSIDriverSpec) {
		s.AttachRequired, s.PodInfoOnMount, s.RequiresRepublish = nil, ptr.To(true), ptr.To(true)
		s.TokenRequests = []storagev1.TokenRequest{{Audience: "vault"}}
	}))
	w.config.Republish = 10 * time.Millisecond
	m, end := w.agent()
	defer end()
	d := csitest.New(driverName, spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		spec.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP)
	w.start(d)
	defer func() { d.Stop() }()
	pod := w.pod("a")
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To(int64(7))}
	done := make(chan error, 1)
	go func() {
		_, err := m.Publish(t.Context(), request(pod, pv))
		done <- err
	}()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "volume pv is not attached to node n yet") {
		t.Errorf("not attached: %v", err)
	}
	if got := m.InUse(); !slices.Equal(got, []corev1.UniqueVolumeName{"kubernetes.io/csi/csi.test^h"}) {
		t.Errorf("in use: %v", got)
	}
	wantCalls(t, d)
	_, err := w.client.StorageV1().VolumeAttachments().Create(t.Context(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: terms.AttachmentName("h", driverName, "n")},
		Status: storagev1.VolumeAttachmentStatus{Attached: true,
			AttachmentMetadata: map[string]string{"lun": "7"}}},
		metav1.CreateOptions{})
	w.must(err)
	was, err := w.client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	w.must(err)
	node := was.DeepCopy()
	node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/csi/csi.test^h"}}
	_, err = w.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	w.must(err)
	m.NodeChanged(was, node)
	if uid := <-w.retry; uid != "a" {
		t.Errorf("%s is tried again", uid)
	}
	p, err := m.Publish(t.Context(), request(pod, pv))
	w.must(err)
	if p.Group {
		t.Error("the node would give the files to the fsGroup, which the driver does")
	}
	w.must(d.Await(t.Context(), 4)) // published again, twice
	stage, publish := d.Asked()[0].(*spec.NodeStageVolumeRequest), d.Asked()[3].(*spec.NodePublishVolumeRequest)
	if stage.GetSecrets()["key"] != "stage" || stage.GetPublishContext()["lun"] != "7" ||
		stage.GetVolumeCapability().GetMount().GetVolumeMountGroup() != "7" {
		t.Errorf("staged with %v", stage)
	}
	about := publish.GetVolumeContext()
	if publish.GetSecrets()["key"] != "publish" || about["csi.storage.k8s.io/pod.name"] != "pa" ||
		about[terms.TokensKey] != `{"vault":{"token":"token-for-vault","expirationTimestamp":"1970-01-01T00:00:01Z"}}` {
		t.Errorf("published with %v", publish)
	}
	w.must(m.Unpublish(t.Context(), "a"))
	if len(m.InUse()) > 0 {
		t.Errorf("in use: %v", m.InUse())
	}
}

// WL-17: a volume whose claim grows is made larger once, and the claim says so; one whose driver refuses says that.
func TestGrows(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		pv := volume()
		pv.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound,
				Capacity:   corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				Conditions: []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending}}}}
		w := newWorld(t, object(), pv, claim)
		d := csitest.New(driverName, spec.NodeServiceCapability_RPC_EXPAND_VOLUME)
		if refuses {
			d.Fails = func(call string) error {
				if call == "expand" {
					return status.Error(codes.InvalidArgument, "too large")
				}
				return nil
			}
		}
		m, end := w.agent()
		w.start(d)
		_, err := m.Publish(t.Context(), request(w.pod("a"), pv))
		w.must(err)
		event := <-w.events
		now, err := w.client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "c", metav1.GetOptions{})
		w.must(err)
		size, state := now.Status.Capacity[corev1.ResourceStorage], now.Status.AllocatedResourceStatuses["storage"]
		switch {
		case refuses && (!strings.Contains(event, "VolumeResizeFailed") || !strings.Contains(event, "too large") ||
			size.String() != "1Gi" || state != corev1.PersistentVolumeClaimNodeResizeInfeasible):
			t.Errorf("refused: %s, %v", event, now.Status)
		case !refuses && (!strings.Contains(event, "FileSystemResizeSuccessful") || size.String() != "2Gi" ||
			state != "" || len(now.Status.Conditions) > 0):
			t.Errorf("grown: %s, %v", event, now.Status)
		}
		end()
		wantCalls(t, d, "publish h", "expand h")
		d.Stop()
	}
}

// WL-17: how full a volume is is asked of drivers that tell.
func TestFilling(t *testing.T) {
	w := newWorld(t, object(), volume())
	d := csitest.New(driverName, spec.NodeServiceCapability_RPC_GET_VOLUME_STATS)
	m, end := w.agent()
	defer end()
	w.start(d)
	defer func() { d.Stop() }()
	if _, ok, err := m.Filling(t.Context(), "a", "v"); ok || err != nil {
		t.Errorf("of a volume that is not there: %v, %v", ok, err)
	}
	_, err := m.Publish(t.Context(), request(w.pod("a"), volume()))
	w.must(err)
	if f, ok, err := m.Filling(t.Context(), "a", "v"); !ok || err != nil ||
		f != (Filling{Bytes: 10, Free: 6, Used: 4}) {
		t.Errorf("%+v, %v, %v", f, ok, err)
	}
}

// Turns are one at a time, and nobody waits longer than it wants to.
func TestTurns(t *testing.T) {
	turns := turns{held: map[corev1.UniqueVolumeName]chan struct{}{}}
	release, err := turns.take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.take(over, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second at once: %v", err)
	}
	release()
	if _, err := turns.take(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// FuzzRecord: whatever is in the file, nothing panics, and places are paths.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"v":{"driver":"d","handle":"h","name":"pv","target":"/a/b","staging":"/s","boot":"1"}}`))
	f.Add([]byte(`{"v":{"driver":"d","handle":"h","target":"../x"}}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parse(text)
		if err != nil {
			return
		}
		for volume, u := range s {
			if u.Target != "" && !filepath.IsAbs(u.Target) || u.Driver == "" {
				t.Errorf("%s: %+v", volume, u)
			}
		}
	})
}
