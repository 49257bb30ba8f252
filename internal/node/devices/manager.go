// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/wherryproject/wherry/internal/node/devices/grant"
)

// Grace is how long a resource whose plug-in has gone stays in the node's capacity; it is the kubelet's.
const Grace = 5 * time.Minute

// Config is what a Manager works with.
type Config struct {
	// Folder is where plug-ins look for the node's socket and make their own: <kubelet's root>/device-plugins.
	Folder     string
	PodsFolder string // holds one folder for each pod
	// File keeps which resources there were, for the next process.
	File string
	// Changed is called when Resources has changed, Retry when a container of the pod may get now what it could not,
	// and Health when devices of the pod have become healthy or unhealthy. None of them may block or be nil.
	Changed       func()
	Retry, Health func(types.UID)
	// Patience is how long a container waits for a plug-in that is about to register: after a restart of the agent they
	// come within seconds. 0: 10 s.
	Patience time.Duration
	Logger   *slog.Logger
}

// Manager knows the devices of a node. Safe for concurrent use.
type Manager struct {
	cfg Config

	mu        sync.Mutex
	resources map[string]*devices
	pods      map[types.UID]holdings
	waiting   map[types.UID]bool // pods whose container could not be given what it asks for
	news      chan struct{}      // closed when anything above has changed
}

// devices are those of one resource.
type devices struct {
	list  []grant.Device
	count int // when its plug-in was last heard
	// client is of the plug-in, nil while it is away: since when is lost.
	client  plugin.DevicePluginClient
	options *plugin.DevicePluginOptions
	lost    time.Time
	cancel  context.CancelFunc // ends the newest connection
	newest  int                // its number: what an earlier one says counts no more
	turn    chan struct{}      // holds a token while somebody chooses
}

// New makes a Manager, with what an earlier process has written down.
func New(c Config) (*Manager, error) {
	m := &Manager{cfg: c, resources: map[string]*devices{}, pods: map[types.UID]holdings{},
		waiting: map[types.UID]bool{}, news: make(chan struct{})}
	counts, err := readCounts(c.File)
	if err != nil {
		c.Logger.Warn("cannot read which devices there were: they are known again when their plug-ins register", "err",
			err)
	}
	for name, n := range counts {
		d := m.resource(name)
		d.count, d.lost = n, time.Now()
	}
	kept, err := filepath.Glob(filepath.Join(c.PodsFolder, "*", FileName))
	if err != nil {
		return nil, err
	}
	for _, file := range kept {
		h, err := readHoldings(file)
		if err != nil { // the machine has lost power, and then nothing of the pod runs
			c.Logger.Warn("cannot read which devices a pod has: its containers are given others", "err", err)
			continue
		}
		m.pods[types.UID(filepath.Base(filepath.Dir(file)))] = h
		for _, has := range h {
			for name := range has { // known as long as somebody has some, also when its plug-in has long been away
				m.resource(name)
			}
		}
	}
	return m, nil
}

// resource returns what is known of one. Called with the lock held, or before anybody else has m.
func (m *Manager) resource(name string) *devices {
	d := m.resources[name]
	if d == nil {
		d = &devices{turn: make(chan struct{}, 1)}
		m.resources[name] = d
	}
	return d
}

// Resources adds what there is to a node's resources, either of which may be nil: healthy devices are allocatable. Of a
// plug-in that is away none is, and after [Grace] the node does not have them at all.
func (m *Manager) Resources(capacity, allocatable corev1.ResourceList) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, d := range m.resources {
		has, healthy := d.amounts(time.Now())
		if capacity != nil {
			capacity[corev1.ResourceName(name)] = *resource.NewQuantity(int64(has), resource.DecimalSI)
		}
		if allocatable != nil {
			allocatable[corev1.ResourceName(name)] = *resource.NewQuantity(int64(healthy), resource.DecimalSI)
		}
	}
}

func (d *devices) amounts(now time.Time) (has, healthy int) {
	if d.client == nil {
		if now.Sub(d.lost) >= Grace {
			return 0, 0
		}
		return d.count, 0
	}
	for _, dev := range d.list {
		if dev.Healthy {
			healthy++
		}
	}
	return len(d.list), healthy
}

// Release gives back what a pod has: it has ended, or is gone.
func (m *Manager) Release(uid types.UID) {
	m.mu.Lock()
	_, had := m.pods[uid]
	delete(m.pods, uid)
	delete(m.waiting, uid)
	m.mu.Unlock()
	if had {
		m.wakeWaiting()
	}
}

// wakeWaiting has those who wait look again.
func (m *Manager) wakeWaiting() {
	m.mu.Lock()
	close(m.news)
	m.news = make(chan struct{})
	waiting := slices.Collect(maps.Keys(m.waiting))
	clear(m.waiting)
	m.mu.Unlock()
	for _, uid := range waiting {
		m.cfg.Retry(uid)
	}
}

// reported takes in what a plug-in says it has, by a connection of this number.
func (m *Manager) reported(name string, number int, client plugin.DevicePluginClient,
	options *plugin.DevicePluginOptions, list []grant.Device) {
	m.mu.Lock()
	d := m.resources[name]
	worse := differ(d.list, list) || d.client == nil
	if number != d.newest || d.client == client && reflect.DeepEqual(d.list, list) { // nothing is new
		m.mu.Unlock()
		return
	}
	d.list, d.count, d.client, d.options = list, len(list), client, options
	m.mu.Unlock()
	m.changed(name, worse)
}

// away takes in that a plug-in does not answer any more: its devices are unhealthy.
func (m *Manager) away(name string, number int) {
	m.mu.Lock()
	d := m.resources[name]
	had := d.client != nil && number == d.newest
	if had {
		d.client, d.lost = nil, time.Now()
	}
	m.mu.Unlock()
	if had {
		m.changed(name, true)
	}
}

// changed notifies those whom a change of a resource concerns.
func (m *Manager) changed(name string, health bool) {
	m.mu.Lock()
	counts := map[string]int{}
	for name, d := range m.resources {
		if has, _ := d.amounts(time.Now()); has > 0 {
			counts[name] = has
		}
	}
	var holders []types.UID
	for uid, h := range m.pods {
		if health && h.of(name) {
			holders = append(holders, uid)
		}
	}
	err := writeCounts(m.cfg.File, counts)
	m.mu.Unlock()
	if err != nil {
		m.cfg.Logger.Warn("cannot write down which devices there are", "err", err)
	}
	m.cfg.Changed()
	for _, uid := range holders {
		m.cfg.Health(uid)
	}
	m.wakeWaiting()
}

// differ reports whether the health of any device is another, or a device has come or gone.
func differ(was, now []grant.Device) bool {
	return !slices.EqualFunc(was, now, func(a, b grant.Device) bool { return a.ID == b.ID && a.Healthy == b.Healthy })
}
