// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/wherryproject/wherry/internal/node/cpus/pin"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Running is a container that runs.
type Running struct {
	Pod       types.UID
	Container string
	ID        string
}

// Runtime is what a Manager needs of the runtime.
type Runtime interface {
	// Running lists the containers that run, also those of no pod's spec.
	Running(context.Context) ([]Running, error)
	// SetCPUs moves a running container. One that is gone is no error.
	SetCPUs(ctx context.Context, id, cpus string) error
}

// Config is what a Manager works with.
type Config struct {
	Policy     pin.Policy
	Off        bool   // nobody has CPUs to himself any more: what an earlier process gave is taken back
	PodsFolder string // holds one folder for each pod
	Runtime    Runtime
	Retry      func(types.UID) // is called when a container of the pod may get now what it could not; must not block
	Logger     *slog.Logger
}

// Manager knows who has which CPUs. Safe for concurrent use.
type Manager struct {
	cfg Config

	mu      sync.Mutex
	pods    map[types.UID]pin.Held
	waiting map[types.UID]bool
	set     map[string]string // CPUs by container id, as the runtime has them
	news    chan struct{}     // holds a token when somebody is to be moved
}

// New makes a Manager, with what an earlier process has written down. CPUs that the machine does not have any more, or
// that are reserved now, are given to nobody; who had them gets others when he starts again.
func New(c Config) (*Manager, error) {
	m := &Manager{cfg: c, pods: map[types.UID]pin.Held{}, waiting: map[types.UID]bool{}, set: map[string]string{},
		news: make(chan struct{}, 1)}
	files, err := filepath.Glob(filepath.Join(c.PodsFolder, "*", FileName))
	if err != nil {
		return nil, err
	}
	may := c.Policy.Machine.All().Difference(c.Policy.Reserved)
	for _, file := range files {
		if c.Off {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			m.wake()
			continue
		}
		held, err := read(file)
		if err != nil { // the machine has lost power, and then nothing of the pod runs
			c.Logger.Warn("cannot read which CPUs a pod has: its containers are given others", "err", err)
			continue
		}
		maps.DeleteFunc(held, func(container string, set cpuset.CPUSet) bool {
			gone := !set.IsSubsetOf(may)
			if gone {
				c.Logger.Warn("a container has CPUs that it may not have any more: it is moved to the shared ones",
					"file", file, "container", container, "cpus", set)
			}
			return gone
		})
		m.pods[types.UID(filepath.Base(filepath.Dir(file)))] = held
	}
	if !c.Off {
		m.wake()
	}
	return m, nil
}

// Give says on which CPUs a container is to run, and whether they are its own or the shared ones. The pod's folder must
// be there.
func (m *Manager) Give(pod *corev1.Pod, c *corev1.Container, kind podspec.Kind) (cpus string, own bool, err error) {
	if m.cfg.Off {
		return "", false, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	if kind != podspec.Ephemeral {
		n = pin.Whole(pod, c)
	}
	if n == 0 {
		return m.shared().String(), false, nil
	}
	before := map[string]bool{}
	for _, name := range podspec.EndedBefore(&pod.Spec, c.Name) {
		before[name] = true
	}
	set, err := m.cfg.Policy.Choose(pin.Request{Need: n, Container: c.Name, Pod: m.pods[pod.UID], Before: before,
		Taken: m.taken(pod.UID)})
	if err != nil {
		m.waiting[pod.UID] = true
		return "", false, fmt.Errorf("%w; the container waits until some come free", err)
	}
	if m.pods[pod.UID][c.Name].Equals(set) {
		return set.String(), true, nil
	}
	held := maps.Clone(m.pods[pod.UID])
	if held == nil {
		held = pin.Held{}
	}
	held[c.Name] = set
	if err := write(filepath.Join(m.cfg.PodsFolder, string(pod.UID), FileName), held); err != nil {
		return "", false, fmt.Errorf("CPUs cannot be given before that is written down: %w", err)
	}
	m.pods[pod.UID] = held
	m.wake()
	return set.String(), true, nil
}

// Keep writes down which CPUs a pod's containers are to have when they start, before it is let in. It fails where
// somebody has got some of them meanwhile. The pod's folder must be there.
func (m *Manager) Keep(uid types.UID, held pin.Held) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.taken(uid)
	for container, set := range held {
		if both := set.Intersection(taken); !both.IsEmpty() {
			return fmt.Errorf("container %s: another pod has got CPUs %s meanwhile", container, both)
		}
	}
	if err := write(filepath.Join(m.cfg.PodsFolder, string(uid), FileName), held); err != nil {
		return fmt.Errorf("CPUs cannot be given before that is written down: %w", err)
	}
	m.pods[uid] = held
	m.wake()
	return nil
}

// Taken are the CPUs that all pods but one have to themselves.
func (m *Manager) Taken(but types.UID) cpuset.CPUSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken(but)
}

// taken are the CPUs of all pods but one. Called with the lock held.
func (m *Manager) taken(but types.UID) (out cpuset.CPUSet) {
	for uid, held := range m.pods {
		for _, set := range held {
			if uid != but {
				out = out.Union(set)
			}
		}
	}
	return out
}

func (m *Manager) shared() cpuset.CPUSet { return m.cfg.Policy.Shared(m.taken("")) }

// Made takes in that a container was made with these CPUs. It does not run yet.
func (m *Manager) Made(id, cpus string) {
	if m.cfg.Off {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set[id] = cpus
}

// Started takes in that a container runs. It may have been made when others had less, by an earlier process too: while
// it did not run nobody moved it.
func (m *Manager) Started(uid types.UID, container, id string) {
	if m.cfg.Off {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.set[id] != m.wants(uid, container) {
		m.wake()
	}
}

// wants says where a container is to run. Called with the lock held.
func (m *Manager) wants(uid types.UID, container string) string {
	if own := m.pods[uid][container]; own.Size() > 0 {
		return own.String()
	}
	return m.shared().String()
}

// Release gives back what a pod has: it has ended, or is gone.
func (m *Manager) Release(uid types.UID) {
	m.mu.Lock()
	_, had := m.pods[uid]
	delete(m.pods, uid)
	delete(m.waiting, uid)
	var waiting []types.UID
	if had {
		for uid := range m.waiting {
			waiting = append(waiting, uid)
		}
		clear(m.waiting)
		m.wake()
	}
	m.mu.Unlock()
	for _, uid := range waiting {
		m.cfg.Retry(uid)
	}
}

// Of are the CPUs that a pod's containers have to themselves.
func (m *Manager) Of(uid types.UID) pin.Held {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.pods[uid])
}

// Unbound says which of a pod's containers have CPUs to themselves, and whether the pod has or will have such ones:
// what bounds their CPU time otherwise does not (Kubernetes' DisableCPUQuotaWithExclusiveCPUs).
func (m *Manager) Unbound(pod *corev1.Pod) (containers map[string]bool, whole bool) {
	if m.cfg.Off {
		return nil, false
	}
	for c := range podspec.OwnContainers(&pod.Spec) {
		whole = whole || pin.Whole(pod, c.Container) > 0
	}
	for name := range m.Of(pod.UID) {
		if containers == nil {
			containers = map[string]bool{}
		}
		containers[name] = true
	}
	return containers, whole
}

// Policy is what holds for all containers.
func (m *Manager) Policy() pin.Policy { return m.cfg.Policy }

// Off reports whether nobody has CPUs to himself.
func (m *Manager) Off() bool { return m.cfg.Off }

func (m *Manager) wake() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// movePause is how long the manager waits when the runtime did not move a container.
const movePause = 10 * time.Second

// Run has containers moved until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	again := time.NewTimer(0)
	defer again.Stop()
	<-again.C
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.news:
		case <-again.C:
		}
		if err := m.move(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Logger.Warn("a container runs on CPUs that are not its own; it is tried again", "err", err)
			again.Reset(movePause)
		}
	}
}

// move has every container run where it is to.
func (m *Manager) move(ctx context.Context) error {
	running, err := m.cfg.Runtime.Running(ctx)
	if err != nil {
		return err
	}
	var errs []error
	there := map[string]bool{}
	for _, r := range running {
		there[r.ID] = true
		m.mu.Lock()
		want := m.wants(r.Pod, r.Container)
		now := m.set[r.ID]
		m.mu.Unlock()
		if want == now {
			continue
		}
		if err := m.cfg.Runtime.SetCPUs(ctx, r.ID, want); err != nil {
			errs = append(errs, err)
			continue
		}
		m.mu.Lock()
		m.set[r.ID] = want
		m.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.set, func(id string, _ string) bool { return !there[id] })
	return errors.Join(errs...)
}
