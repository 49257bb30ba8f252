// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/errdefs"
	"github.com/containerd/go-runc"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

const (
	logFile     = "log.json" // runc's log, in the bundle
	deathSignal = unix.SIGKILL
)

// container is a task of containerd's: a container of runc's, or a pod's sandbox, which has no container but a process
// that holds the pod's namespaces (holder).
type container struct {
	id, bundle string
	spec       spec
	settings   settings
	options    *options.Options
	restore    restore
	mounted    bool

	init   *process
	paused atomic.Bool

	// changing is held while something is made or unmade that must not be at the same time.
	changing sync.Mutex

	mu       sync.Mutex
	cgroup   cgroup
	oom      *oomWatch
	oomSent  <-chan struct{} // closed when containerd has the event of the last OOM kill
	execs    map[string]*process
	entering sync.WaitGroup // runc that is starting a process in it
	ending   bool           // its first process has ended: no other is started any more
}

// restore says from what a container is to be restored, instead of being started.
type restore struct{ checkpoint, parent string }

// newContainer reads what is to be made and mounts its files. Nothing runs yet.
func newContainer(ctx context.Context, r *taskapi.CreateTaskRequest, namespace string) (_ *container, err error) {
	c := &container{
		id: r.GetID(), bundle: r.GetBundle(), options: &options.Options{}, execs: map[string]*process{},
		restore: restore{r.GetCheckpoint(), r.GetParentCheckpoint()},
	}
	if o := r.GetOptions(); len(o.GetValue()) > 0 {
		if err := proto.Unmarshal(o.GetValue(), c.options); err != nil {
			return nil, fmt.Errorf("options of the runtime: %w", err)
		}
	}
	c.settings = settings{
		Binary: c.options.GetBinaryName(), Root: filepath.Join(c.options.GetRoot(), namespace),
		SystemdCgroup: c.options.GetSystemdCgroup(),
	}
	c.init = newProcess("", streams{
		stdin: r.GetStdin(), stdout: r.GetStdout(), stderr: r.GetStderr(), terminal: r.GetTerminal(),
		uid: int(c.options.GetIoUid()), gid: int(c.options.GetIoGid()),
	})
	if err := c.init.streams.check(); err != nil {
		return nil, err
	}
	if c.spec, err = readSpec(c.bundle); err != nil {
		return nil, err
	}
	if err := writeJSON(filepath.Join(c.bundle, settingFile), c.settings); err != nil {
		return nil, err
	}
	if c.spec.sandbox() {
		return c, nil // its image's files are of no use
	}
	if err := c.mount(r); err != nil {
		return nil, err
	}
	if err := c.init.open(ctx); err != nil {
		return nil, errors.Join(err, mount.UnmountRecursive(c.rootfs(), 0))
	}
	return c, nil
}

// abandon ends a container that was never started. It returns whether it was one.
func (c *container) abandon() bool {
	c.changing.Lock()
	defer c.changing.Unlock()
	if c.init.status(false) != task.Status_CREATED {
		return false
	}
	c.init.never(killedStatus)
	return true
}

// rootfs is where the container's files are mounted.
func (c *container) rootfs() string { return filepath.Join(c.bundle, "rootfs") }

// mount mounts the container's files, all or nothing.
func (c *container) mount(r *taskapi.CreateTaskRequest) error {
	if len(r.GetRootfs()) == 0 {
		return nil
	}
	if err := os.Mkdir(c.rootfs(), 0o711); err != nil && !os.IsExist(err) {
		return err
	}
	var mounts []mount.Mount
	for _, m := range r.GetRootfs() {
		mounts = append(mounts, mount.Mount{
			Type: m.GetType(), Source: m.GetSource(), Target: m.GetTarget(), Options: m.GetOptions(),
		})
	}
	if err := mount.All(mounts, c.rootfs()); err != nil {
		_ = mount.UnmountRecursive(c.rootfs(), 0)
		return fmt.Errorf("mount the container's files: %w", err)
	}
	c.mounted = true
	return nil
}

// runc is the runtime. It is killed with the shim: what it had begun is then cleaned up by another.
func (c *container) runc(log string) *runc.Runc {
	return newRunc(c.settings, filepath.Join(c.bundle, log))
}

func newRunc(s settings, log string) *runc.Runc {
	return &runc.Runc{
		Command: s.Binary, Root: s.Root, SystemdCgroup: s.SystemdCgroup,
		Log: log, LogFormat: runc.JSON, PdeathSignal: syscall.SIGKILL,
	}
}

// number is that of the first process, or what stands for it before it is started.
func (c *container) number() int { return c.numberOf(c.init) }

func (c *container) numberOf(p *process) int {
	if p == c.init && p.status(false) == task.Status_CREATED {
		return os.Getpid()
	}
	return p.number()
}

// process finds the first process, or one that is executed in the container.
func (c *container) process(exec string) (*process, error) {
	if exec == "" {
		return c.init, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.execs[exec]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("process %s does not exist: %w", exec, errdefs.ErrNotFound)
}

// addExec notes a process that is to be started in the container.
func (c *container) addExec(p *process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.execs[p.id] != nil {
		return fmt.Errorf("process %s: %w", p.id, errdefs.ErrAlreadyExists)
	}
	c.execs[p.id] = p
	return nil
}

func (c *container) dropExec(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.execs, id)
}

// enter is to be called before a process is started in the container, and the function that it gives after that.
func (c *container) enter() (left func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending || c.init.number() == 0 {
		return nil, fmt.Errorf("container %s is not running: %w", c.id, errdefs.ErrFailedPrecondition)
	}
	c.entering.Add(1)
	return c.entering.Done, nil
}

// closed has no process be started in the container any more, and waits for those that are being started. Those that
// wait for containerd are not: it has given them up, where the container was killed under them.
func (c *container) closed() {
	c.mu.Lock()
	c.ending = true
	for _, p := range c.execs {
		p.drop()
	}
	c.mu.Unlock()
	c.entering.Wait()
}

// running lists the processes that were started in the container and have not ended.
func (c *container) running() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*process
	for _, p := range c.execs {
		if _, over := p.over(); !over && p.number() != 0 {
			out = append(out, p)
		}
	}
	return out
}

// where is the container's cgroup; a sandbox has none of its own.
func (c *container) where() cgroup {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cgroup
}

// lastOOM is closed when the event of the last OOM kill has been sent; nil: there was none.
func (c *container) lastOOM() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.oomSent
}

// kill sends a signal to the first process or, with all, kills every process of the container.
func (c *container) kill(exec string, sig uint32, all bool) error {
	p, err := c.process(exec)
	if err != nil {
		return err
	}
	if exec != "" && sig == uint32(deathSignal) {
		p.drop()
	}
	err = p.signal(sig)
	if all && exec == "" && c.where() != nil && sig == uint32(deathSignal) {
		if kerr := c.where().kill(); kerr != nil {
			return kerr
		}
	}
	return err
}

// update changes the container's limits; resources are JSON of the OCI specification.
func (c *container) update(ctx context.Context, resources []byte) error {
	if c.spec.sandbox() {
		return nil // it has none
	}
	var limits specs.LinuxResources
	if err := json.Unmarshal(resources, &limits); err != nil {
		return fmt.Errorf("resources: %w: %w", err, errdefs.ErrInvalidArgument)
	}
	return c.failure("OCI runtime update failed", logFile, c.runc(logFile).Update(ctx, c.id, &limits))
}

// freeze pauses all processes of the container, thaw has them go on.
func (c *container) freeze(ctx context.Context) error {
	err := c.failure("OCI runtime pause failed", logFile, c.runc(logFile).Pause(ctx, c.id))
	if err == nil {
		c.paused.Store(true)
	}
	return err
}

func (c *container) thaw(ctx context.Context) error {
	err := c.failure("OCI runtime resume failed", logFile, c.runc(logFile).Resume(ctx, c.id))
	if err == nil {
		c.paused.Store(false)
	}
	return err
}

// checkpoint writes the state of all processes into a folder (CRIU).
func (c *container) checkpoint(ctx context.Context, path string, o *options.CheckpointOptions) error {
	work := o.GetWorkPath()
	if work == "" {
		work = filepath.Join(c.bundle, "criu-work")
		defer os.RemoveAll(work)
	}
	var actions []runc.CheckpointAction
	if !o.GetExit() {
		actions = append(actions, runc.LeaveRunning)
	}
	return c.failure("checkpoint failed", logFile, c.runc(logFile).Checkpoint(ctx, c.id, &runc.CheckpointOpts{
		WorkDir: work, ImagePath: path, AllowOpenTCP: o.GetOpenTcp(), AllowTerminal: o.GetTerminal(),
		AllowExternalUnixSockets: o.GetExternalUnixSockets(), FileLocks: o.GetFileLocks(),
		EmptyNamespaces: o.GetEmptyNamespaces(),
	}, actions...))
}

// failure says why runc has failed, in its own last words.
func (c *container) failure(what, log string, err error) error {
	if err == nil {
		return nil
	}
	if words := lastError(filepath.Join(c.bundle, log)); words != "" {
		return fmt.Errorf("%s: %s", what, words)
	}
	return fmt.Errorf("%s: %w", what, err)
}
