// SPDX-License-Identifier: Apache-2.0

package devices_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/wherryproject/wherry/internal/node/devices"
	"github.com/wherryproject/wherry/internal/node/devices/devicetest"
	"github.com/wherryproject/wherry/internal/node/kubeletsocket"
	"github.com/wherryproject/wherry/internal/node/numa/place"
)

const gpu = "vendor.example/gpu"

// node is a manager with folders of its own, which can be started again.
type node struct {
	*devices.Manager
	t            *testing.T
	dir          string
	patience     time.Duration // with plug-ins that are away
	stop         func()
	mu           sync.Mutex
	news         chan struct{}
	retried, ill []types.UID
}

// newNode waits for plug-ins that are about to register as long as a busy machine takes.
func newNode(t *testing.T) *node { return newNodeWith(t, patience) }

// patience bounds what comes soon, but for a busy machine.
const patience = 30 * time.Second

// newNodeWith has another patience: a little one, where a plug-in is away that does not come.
func newNodeWith(t *testing.T, patience time.Duration) *node {
	n := &node{t: t, dir: t.TempDir(), patience: patience}
	for _, pod := range []string{"one", "two"} {
		if err := os.MkdirAll(filepath.Join(n.dir, "pods", pod), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.start()
	return n
}

func (n *node) folder() string { return filepath.Join(n.dir, "device-plugins") }

func (n *node) start() {
	n.t.Helper()
	n.news = make(chan struct{}, 1)
	m, err := devices.New(devices.Config{Folder: n.folder(), PodsFolder: filepath.Join(n.dir, "pods"),
		File: filepath.Join(n.dir, "devices.json"), Logger: slog.New(slog.DiscardHandler),
		Patience: n.patience, Changed: func() {
			select {
			case n.news <- struct{}{}:
			default:
			}
		},
		Retry:  func(uid types.UID) { n.mu.Lock(); n.retried = append(n.retried, uid); n.mu.Unlock() },
		Health: func(uid types.UID) { n.mu.Lock(); n.ill = append(n.ill, uid); n.mu.Unlock() }})
	if err != nil {
		n.t.Fatal(err)
	}
	l, err := kubeletsocket.Listen(n.folder())
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx, l)
	}()
	var once sync.Once
	n.Manager, n.stop = m, func() { once.Do(func() { cancel(); <-done }) }
	n.t.Cleanup(n.stop)
}

// again is another process after this one.
func (n *node) again() { n.stop(); n.start() }

// plugin starts a plug-in and waits until the node has its devices.
func (n *node) plugin(p *devicetest.Plugin, list ...*plugin.Device) *devicetest.Plugin {
	n.t.Helper()
	if p == nil {
		p = &devicetest.Plugin{}
	}
	p.Folder, p.Resource = n.folder(), gpu
	if p.Options == nil {
		p.Options = &plugin.DevicePluginOptions{}
	}
	if err := p.Start(list...); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(p.Stop)
	n.until(len(list))
	return p
}

// until waits until so many devices are in the node's capacity.
func (n *node) until(has int) {
	n.t.Helper()
	n.await(func(capacity, _ int64) bool { return capacity == int64(has) })
}

func (n *node) await(until func(capacity, allocatable int64) bool) {
	n.t.Helper()
	over := time.After(patience)
	for {
		c, a := n.amounts()
		if until(c, a) {
			return
		}
		select {
		case <-n.news:
		case <-over:
			n.t.Fatalf("the node has %d, %d allocatable", c, a)
		}
	}
}

func (n *node) amounts() (int64, int64) {
	capacity, allocatable := corev1.ResourceList{}, corev1.ResourceList{}
	n.Resources(capacity, allocatable)
	c, a := capacity[gpu], allocatable[gpu]
	return c.Value(), a.Value()
}

// pod asks for so many devices in each of its containers.
func pod(uid string, inits, mains map[string]int64) *corev1.Pod {
	p := &corev1.Pod{}
	p.UID, p.Name = types.UID(uid), uid
	for into, asks := range map[*[]corev1.Container]map[string]int64{&p.Spec.InitContainers: inits,
		&p.Spec.Containers: mains} {
		for name, n := range asks {
			*into = append(*into, corev1.Container{Name: name, Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{gpu: *resource.NewQuantity(n, resource.DecimalSI)}}})
		}
	}
	return p
}

func container(p *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// gives expects what a container is given, by the plug-in's variable.
func (n *node) gives(p *corev1.Pod, name, want string) {
	n.t.Helper()
	g, err := n.Give(n.t.Context(), p, container(p, name))
	if err != nil || g == nil || len(g.Envs) != 1 || string(g.Envs[0].Value) != want {
		n.t.Errorf("%s/%s is given %+v, %v, want %s", p.Name, name, g, err, want)
	}
}

// PL-34: devices are counted as their plug-in reports them, given once, and kept over restarts of the node's process,
// without asking the plug-in again.
func TestGive(t *testing.T) {
	n := newNode(t)
	p := n.plugin(nil, devicetest.Device("b", true, 0), devicetest.Device("a", true, 1),
		devicetest.Device("c", false, -1))
	if c, a := n.amounts(); c != 3 || a != 2 {
		t.Errorf("capacity %d, allocatable %d, want 3 and 2", c, a)
	}
	one, two := pod("one", map[string]int64{"i": 1}, map[string]int64{"m": 1}),
		pod("two", nil, map[string]int64{"m": 2})
	n.gives(one, "i", "a")
	n.gives(one, "m", "a") // its init container has ended
	if _, err := n.Give(t.Context(), two, container(two, "m")); err == nil ||
		err.Error() != "requested number of devices unavailable for vendor.example/gpu. Requested: 2, Available: 1; the container waits until devices come free" {
		t.Errorf("two of one: %v", err)
	}
	n.gives(one, "m", "a") // restarted
	if got, want := p.Calls(), []string{"Allocate a", "Allocate a"}; !slices.Equal(got, want) {
		t.Errorf("the plug-in was asked %q, want %q", got, want)
	}
	n.again()
	if c, a := n.amounts(); c != 3 || a != 0 {
		t.Errorf("before the plug-in is back: capacity %d, allocatable %d, want 3 and 0", c, a)
	}
	n.gives(one, "m", "a") // without its plug-in
	p.Stop()
	p = n.plugin(nil, devicetest.Device("a", true, 1), devicetest.Device("b", true, 0))
	n.gives(one, "m", "a")
	if got := p.Calls(); len(got) > 0 {
		t.Errorf("asked again: %q", got)
	}
	n.Release("one")
	n.gives(two, "m", "a,b")
	held := n.Held("two")["m"]
	if len(held) != 2 || held[0].Resource != gpu || !slices.Equal(held[0].IDs, []string{"a"}) ||
		!slices.Equal(held[0].NUMA, []int64{1}) {
		t.Errorf("held: %+v", held)
	}
	if got := n.Allocatable(); len(got) != 2 || !slices.Equal(got[1].IDs, []string{"b"}) {
		t.Errorf("allocatable: %+v", got)
	}
	bare := &corev1.Container{Name: "bare"}
	if g, err := n.Give(t.Context(), one, bare); g != nil || err != nil {
		t.Errorf("a container that asks for nothing: %+v, %v", g, err)
	}
	bare.Resources.Limits = corev1.ResourceList{"other.example/x": resource.MustParse("1")}
	if g, err := n.Give(t.Context(), one, bare); g != nil || err != nil {
		t.Errorf("a resource without a plug-in is counted only: %+v, %v", g, err)
	}
}

// PL-34: a process that is killed between choosing and the plug-in's answer asks again for the same devices.
func TestKilledBeforeTheAnswer(t *testing.T) {
	n := newNode(t)
	refuses := errors.New("not now")
	p := n.plugin(&devicetest.Plugin{Answer: func([]string) (*plugin.ContainerAllocateResponse, error) {
		return nil, refuses
	},
		Options: &plugin.DevicePluginOptions{GetPreferredAllocationAvailable: true},
		Prefer:  func(free, _ []string, size int) []string { return free[len(free)-size:] }},
		devicetest.Device("a", true, -1), devicetest.Device("b", true, -1))
	one := pod("one", nil, map[string]int64{"m": 1})
	if _, err := n.Give(t.Context(), one, container(one, "m")); err == nil ||
		!strings.Contains(err.Error(), "not now") {
		t.Fatalf("%v", err)
	}
	n.again()
	p.Stop()
	p = n.plugin(nil, devicetest.Device("a", true, -1), devicetest.Device("b", true, -1))
	n.gives(one, "m", "b")
	if got := p.Calls(); !slices.Equal(got, []string{"Allocate b"}) {
		t.Errorf("asked %q", got)
	}
}

// PL-34: a plug-in that goes makes its devices unhealthy; pods that wait are told when it comes, when a device is given
// back, and those that have devices when their health changes.
func TestComeAndGo(t *testing.T) {
	n := newNodeWith(t, 50*time.Millisecond)
	p := n.plugin(&devicetest.Plugin{Options: &plugin.DevicePluginOptions{PreStartRequired: true}},
		devicetest.Device("a", true, -1))
	one, two := pod("one", nil, map[string]int64{"m": 1}), pod("two", nil, map[string]int64{"m": 1})
	n.gives(one, "m", "a")
	if got := p.Calls(); !slices.Equal(got, []string{"Allocate a", "PreStart a"}) {
		t.Errorf("asked %q", got)
	}
	health := func(want corev1.ResourceHealthStatus) {
		t.Helper()
		h := n.Health("one")["m"]
		if len(h) != 1 || h[0].Name != gpu || len(h[0].Resources) != 1 || h[0].Resources[0].ResourceID != "a" ||
			h[0].Resources[0].Health != want {
			t.Errorf("health %+v, want %s", h, want)
		}
	}
	health(corev1.ResourceHealthStatusHealthy)
	if _, err := n.Give(t.Context(), two, container(two, "m")); err == nil {
		t.Error("a device was given twice")
	}
	p.Set(devicetest.Device("a", false, -1))
	n.await(func(_, a int64) bool { return a == 0 })
	health(corev1.ResourceHealthStatusUnhealthy)
	p.Set()
	n.await(func(c, _ int64) bool { return c == 0 })
	health(corev1.ResourceHealthStatusUnknown)
	p.Set(devicetest.Device("a", true, -1))
	n.await(func(_, a int64) bool { return a == 1 })
	p.Stop()
	n.await(func(c, a int64) bool { return c == 1 && a == 0 })
	health(corev1.ResourceHealthStatusUnknown)
	if _, err := n.Give(t.Context(), two, container(two, "m")); err == nil ||
		!strings.Contains(err.Error(),
			"the device plug-in of vendor.example/gpu is not there: the container waits until it registers at ") {
		t.Errorf("while it is away: %v", err)
	}
	n.plugin(nil, devicetest.Device("a", true, -1))
	n.await(func(_, a int64) bool { return a == 1 })
	if _, err := n.Give(t.Context(), two, container(two, "m")); err == nil {
		t.Error("a device was given twice")
	}
	n.Release("one")
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.retried, "two") || !slices.Contains(n.ill, "one") {
		t.Errorf("told: %v, of health: %v", n.retried, n.ill)
	}
}

// PL-34: what is no registration is refused in words.
func TestRegisterRefuses(t *testing.T) {
	n := newNode(t)
	for _, tt := range []struct{ resource, version, endpoint, want string }{
		{gpu, "v1alpha1", "x.sock", `version "v1alpha1" is not supported: v1beta1`},
		{"cpu", "v1beta1", "x.sock", `the resource name "cpu" is not that of an extended resource`},
		{"kubernetes.io/x", "v1beta1", "x.sock", "not that of an extended resource"},
		{gpu, "v1beta1", "../x.sock", `the endpoint "../x.sock" is not the name of a socket beside kubelet.sock`},
		{gpu, "v1beta1", "", "is not the name of a socket"},
		{gpu, "v1beta1", "kubelet.sock", "is not the name of a socket"},
	} {
		p := devicetest.Plugin{Folder: n.folder(), Resource: tt.resource}
		if err := p.Register(tt.version, tt.endpoint); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	p := devicetest.Plugin{Folder: n.folder(), Resource: gpu}
	if err := p.Register("v1beta1", "nobody.sock"); err != nil {
		t.Error(err)
	}
	if c, a := n.amounts(); c != 0 || a != 0 {
		t.Errorf("a plug-in that nobody can reach has %d, %d", c, a)
	}
}

// PL-34: a container keeps its device also when the server starts after the plug-in's grace was over, and its resource
// is on record no more.
func TestStartAfterTheGrace(t *testing.T) {
	n := newNode(t)
	p := n.plugin(nil, devicetest.Device("a", true, -1))
	one := pod("one", nil, map[string]int64{"m": 1})
	n.gives(one, "m", "a")
	p.Stop()
	n.stop()
	none, err := json.Marshal(map[string]int{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "devices.json"), none, 0o600); err != nil {
		t.Fatal(err)
	}
	n.start()
	n.gives(one, "m", "a")
}

// PL-34: plug-ins learn that they have to register again when their own sockets go, as with a kubelet that starts.
func TestOldSocketsGo(t *testing.T) {
	n := newNode(t)
	n.plugin(nil, devicetest.Device("a", true, -1))
	socket := filepath.Join(n.folder(), "vendor.example-gpu.sock")
	if _, err := os.Stat(socket); err != nil {
		t.Fatal(err)
	}
	n.again()
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the plug-in's socket is there after a restart: %v", err)
	}
}

// PL-34: what a plug-in answers when it is asked for its options holds, as with the kubelet, whatever it registered
// with.
func TestOptionsAreAsked(t *testing.T) {
	n := newNode(t)
	p := n.plugin(&devicetest.Plugin{Options: &plugin.DevicePluginOptions{PreStartRequired: true}},
		devicetest.Device("a", true, -1))
	select { // the news of the first registration
	case <-n.news:
	default:
	}
	again := &devicetest.Plugin{Folder: p.Folder, Resource: gpu, Options: &plugin.DevicePluginOptions{}}
	if err := again.Register(plugin.Version, "vendor.example-gpu.sock"); err != nil {
		t.Fatal(err)
	}
	<-n.news
	one := pod("one", nil, map[string]int64{"m": 1})
	n.gives(one, "m", "a")
	if got := p.Calls(); !slices.Equal(got, []string{"Allocate a", "PreStart a"}) {
		t.Errorf("asked %q", got)
	}
}

// PL-34: a plug-in that wants to be asked before each start is: a container does not start without it, also after a
// restart of the node's process, which does not know yet what the plug-in wants.
func TestNoStartWithoutPreStart(t *testing.T) {
	n := newNodeWith(t, 50*time.Millisecond)
	options := &plugin.DevicePluginOptions{PreStartRequired: true}
	p := n.plugin(&devicetest.Plugin{Options: options}, devicetest.Device("a", true, -1))
	one := pod("one", nil, map[string]int64{"m": 1})
	n.gives(one, "m", "a")
	p.Stop()
	n.again()
	if _, err := n.Give(t.Context(), one, container(one, "m")); err == nil ||
		!strings.Contains(err.Error(), "is not there") {
		t.Errorf("started without having been asked: %v", err)
	}
	p = n.plugin(&devicetest.Plugin{Options: options}, devicetest.Device("a", true, -1))
	n.await(func(_, a int64) bool { return a == 1 })
	n.gives(one, "m", "a")
	if got := p.Calls(); !slices.Equal(got, []string{"PreStart a"}) {
		t.Errorf("asked %q", got)
	}
}

// PL-33: devices that were chosen when the pod came are nobody else's, also after a restart; when the container starts
// its plug-in may choose others that are as near, but none that are farther.
func TestReserve(t *testing.T) {
	n := newNode(t)
	at := func(id string, node int64) *plugin.Device {
		return &plugin.Device{ID: id, Health: plugin.Healthy,
			Topology: &plugin.TopologyInfo{Nodes: []*plugin.NUMANode{{ID: node}}}}
	}
	list := []*plugin.Device{at("a", 0), at("b", 1), at("c", 1)}
	p := n.plugin(nil, list...)
	one := pod("one", map[string]int64{"i": 1}, map[string]int64{"c": 1})
	reserved := func(id string) map[string]map[string]place.Reserved {
		return map[string]map[string]place.Reserved{"c": {gpu: {IDs: []string{id}, Near: []int64{1}}},
			"i": {gpu: {IDs: []string{id}, Near: []int64{1}}}}
	}
	if err := n.Reserve("one", reserved("b")); err != nil {
		t.Fatal(err)
	}
	if err := n.Reserve("two", reserved("b")); err == nil ||
		err.Error() != "container c: another pod has got device b of "+gpu+" meanwhile" &&
			err.Error() != "container i: another pod has got device b of "+gpu+" meanwhile" {
		t.Errorf("it is another's too: %v", err)
	}
	p.Stop()
	n.again()
	if d := n.Facts()[gpu]; !d.Taken["b"] || d.Taken["a"] {
		t.Errorf("after a restart %+v", d)
	}
	n.plugin(nil, list...)
	n.gives(one, "i", "b")
	n.gives(one, "c", "b")
	n.gives(pod("two", nil, map[string]int64{"c": 1}), "c", "a")
}
