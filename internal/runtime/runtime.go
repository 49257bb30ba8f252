// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/plugins/snapshots/overlay/overlayutils"
	"github.com/containerd/log"
	"github.com/containerd/plugin"
	"google.golang.org/grpc"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"

	"github.com/wherryproject/wherry/internal/runtime/bundle"
	"github.com/wherryproject/wherry/internal/runtime/network"
	"github.com/wherryproject/wherry/internal/runtime/pull"
	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// Namespace is the containerd namespace the CRI keeps everything in.
const Namespace = "k8s.io"

// stopLimit is how long Close waits for calls under way, and for containerd to close its databases.
const stopLimit = 3 * time.Second

// running guards containerd's global plug-in registry and logger: one Runtime per process at a time.
var running atomic.Bool

// ErrRunning is returned by Start while another Runtime of this process is not closed.
var ErrRunning = errors.New("a container runtime is already running in this process; there can only be one per process")

// Runtime is a running containerd.
type Runtime struct {
	engine
	config   Config
	dirs     dirs
	features Features

	lock      *os.File
	daemon    *daemon
	events    *eventServer
	ends      *ends
	served    *criServer
	streams   streaming.Runtime // what the CRI's server of streams calls
	cancel    context.CancelFunc
	leaveOff  context.CancelFunc // ends what late waits for
	updater   imageUpdater
	puller    *pull.Puller
	leavePath func()          // restores PATH
	keeper    *network.Keeper // nil without a pod network
	made      []func() error  // takes back what Start made on the machine, in the order of making

	reaping  sync.Mutex          // held while lost containers are looked for
	stubborn map[string]stubborn // by id: lost containers that could not be deleted; with reaping held
	removed  chan struct{}       // holds a token when a sandbox was removed
	late     sync.WaitGroup      // reapLate, the toolbox, and the keeper of the network

	done     chan struct{} // closed when the runtime can no longer work, or is closed
	end      sync.Once
	mute     atomic.Bool // containerd is stopping: its complaints are about that
	launched bool        // the plug-ins were begun to be started
	closing  atomic.Bool
	leaving  atomic.Bool // see Leave
	err      error       // why, once done is closed; nil after Close
}

// Start runs containerd on a data folder and returns when it answers. Containers that run from that folder already,
// left by a former process, are picked up. ctx bounds the start only.
//
// Errors name what is missing on the machine: root, overlayfs, the helper programs.
func Start(ctx context.Context, c Config) (*Runtime, error) {
	r, err := claim(c)
	if err != nil {
		return nil, err
	}
	if err = r.prepare(ctx); err == nil {
		err = r.launch(ctx)
	}
	if err != nil {
		_ = r.Close()
		if uerr := r.Undo(); uerr != nil {
			r.log.Warn("what the start made on this machine could not be taken back", "err", uerr)
		}
		return nil, err
	}
	return r, nil
}

// claim makes a data folder ours, and nobody else's.
func claim(c Config) (*Runtime, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("the embedded container runtime needs root: run wherry with sudo")
	}
	if !running.CompareAndSwap(false, true) {
		return nil, ErrRunning
	}
	r := &Runtime{
		config: c, dirs: dirsOf(c.DataDir), done: make(chan struct{}), removed: make(chan struct{}, 1),
		daemon: &daemon{set: plugin.NewPluginSet()},
	}
	r.engine = engine{log: c.Logger, tasks: filepath.Join(r.dirs.run, taskPlugin, Namespace),
		keeps: func(ctx context.Context, id string) (bool, error) {
			c, err := r.daemon.metadata(ctx, id)
			return err == nil && c != nil && keptOutput(c), err
		}}
	if r.lock, err = r.dirs.lock(); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// prepare makes the data folder ready: folders, mounts, helper programs, network.
func (r *Runtime) prepare(ctx context.Context) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	r.noteLink()
	if err := r.dirs.prepare(boot); err != nil {
		return err
	}
	if err := r.shareFolder(); err != nil {
		return err
	}
	if err := workMountsIn(r.dirs.workMounts()); err != nil {
		return err
	}
	if err := errors.Join(sweepBundles(r.dirs), sweepRecords(r.dirs)); err != nil {
		return fmt.Errorf("half-deleted containers: %w", err)
	}
	r.ends = watchEnds(ctx, r.dirs, r.log)
	if err := bundle.Embedded().Unpack(r.dirs.bin); err != nil {
		return err
	}
	if r.features, err = featuresOf(ctx, filepath.Join(r.dirs.bin, bundle.Runc)); err != nil {
		return err
	}
	if !r.features.Seccomp {
		r.log.Warn("runc was built without seccomp: containers with a seccomp profile will not start")
	}
	if r.config.Snapshotter == Overlayfs {
		if err := checkOverlay(r.dirs.root, overlayutils.Supported); err != nil {
			return err
		}
	}
	if socket := r.config.snapshotterSocket; socket != "" {
		if err := checkSnapshotter(ctx, r.config.Snapshotter, socket); err != nil {
			return err
		}
	}
	return r.prepareNetwork()
}

// launch starts containerd's plug-ins and serves them.
func (r *Runtime) launch(ctx context.Context) error {
	logger := newLogger(r.log, &r.mute, r.fail)
	log.L = logger
	keepShims()
	run, cancel := context.WithCancel(log.WithLogger(context.Background(), logger))
	r.cancel = cancel

	own := &ownImages{snapshotter: r.config.Snapshotter}
	var err error
	if own.pause, err = pauseImage(); err != nil {
		return err
	}
	if own.toolbox, err = toolboxImage(); err != nil {
		return err
	}
	if err := r.loadDaemon(run, own); err != nil {
		return err
	}
	if r.streams, err = streamsOf(r.daemon); err != nil {
		return err
	}
	if r.served, err = serveCRI(r.daemon, r.taps, own, r.around); err != nil {
		return err
	}
	r.cri = criapi.NewRuntimeServiceClient(r.served.conn)
	if err := r.awaitReady(ctx); err != nil {
		return err
	}
	if err := r.reapShims(ctx, func(string) bool { return true }); err != nil {
		return err
	}
	late, leaveOff := context.WithCancel(run)
	r.leaveOff = leaveOff
	r.late.Go(func() { r.deafenStreams(late) })
	r.late.Go(func() { r.reapLate(late) })
	r.late.Go(func() {
		if err := own.late(late); err != nil && late.Err() == nil {
			r.log.Warn("cannot make the debug image, which is tried again when it is needed", "err", err)
		}
	})
	if err := r.reapLost(ctx, true); err != nil {
		r.log.Warn("orphaned containers could not be removed", "err", err)
	}
	if err := r.tidyNetwork(ctx); err != nil {
		return err
	}
	r.keepNetwork(late)
	return nil
}

// loadDaemon starts containerd's parts, the CRI first.
func (r *Runtime) loadDaemon(run context.Context, own *ownImages) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	r.taps = tap.New(filepath.Join(r.dirs.run, criPlugin, "containers"), r.log)
	load := &loader{dirs: r.dirs, log: r.log, snapshotter: r.config.Snapshotter,
		socket: r.config.snapshotterSocket, daemon: r.daemon, taps: r.taps,
		settings: settingsFor(r.config, r.dirs, facts{
			pauseImage:  own.pause.name(),
			restrictOOM: !mayLowerOOMScore(string(status)),
			path:        r.enterPath(),
		}).resting()}
	r.launched = true
	// Before containerd finds its shims: it has those delete containers that have ended meanwhile, and with them goes
	// what their pipes still hold.
	r.taps.Recover()
	// The CRI looks for its pause image, and for containers, when it starts: all they need must be there before.
	if err := load.load(run, criPlugin); err != nil {
		return err
	}
	if err := sweepSnapshots(run, r.daemon, r.dirs.root, r.config.Snapshotter); err != nil {
		r.log.Warn("unrecorded snapshots could not be removed", "err", err)
	}
	if r.client, err = r.daemon.client(run); err != nil {
		return fmt.Errorf("containerd client: %w", err)
	}
	if r.events, err = serveEvents(run, r.daemon, r.dirs.eventSocket()); err != nil {
		return err
	}
	if r.updater, err = updaterOf(r.daemon); err != nil {
		return err
	}
	own.client, own.updater = r.client, r.updater
	r.puller = pull.New(pull.Config{Client: r.client, Namespace: Namespace, Known: r.updater.UpdateImage,
		Snapshotter: r.config.Snapshotter, HostsDir: r.config.HostsDir, Progress: r.config.PullProgress,
		Lazy: r.config.snapshotterSocket != "", Stopping: func() bool { return r.leaving.Load() || r.closing.Load() }})
	if err := own.ensure(run); err != nil {
		return err
	}
	r.ends.recordMissed()
	return load.load(run, "")
}

// enterPath puts the helper programs first in this process's PATH until Close, and returns it. containerd finds its
// shim there and nowhere else, and would take one of the machine's, of any version.
func (r *Runtime) enterPath() string {
	old, had := os.LookupEnv("PATH")
	path := r.dirs.bin
	if old != "" {
		path += string(os.PathListSeparator) + old
	}
	r.leavePath = func() {
		if had {
			_ = os.Setenv("PATH", old)
		} else {
			_ = os.Unsetenv("PATH")
		}
	}
	_ = os.Setenv("PATH", path) // fails for NUL bytes only
	return path
}

// awaitReady waits until the plug-ins that get ready in the background are.
func (r *Runtime) awaitReady(ctx context.Context) error {
	for _, ready := range r.daemon.ready {
		select {
		case <-ready:
		case <-r.done:
			return r.err
		case <-ctx.Done():
			return fmt.Errorf("the container runtime did not become ready: %w", context.Cause(ctx))
		}
	}
	return nil
}

// fail records that containerd cannot go on.
func (r *Runtime) fail(err error) {
	r.end.Do(func() {
		r.err = err
		close(r.done)
	})
}

// Conn is a connection to the CRI (runtime and image service). It belongs to the Runtime: do not close it.
func (r *Runtime) Conn() *grpc.ClientConn { return r.served.conn }

// Containerd is a client of containerd itself, in the CRI's namespace, for what the CRI has no call for. It belongs to
// the Runtime. Calls need the namespace in their context (namespaces.WithNamespace).
func (r *Runtime) Containerd() *containerd.Client { return r.client }

// Features says what containers can use on this machine.
func (r *Runtime) Features() Features { return r.features }

// Done is closed when the runtime has ended: by Close, or because containerd gave up (see Err).
func (r *Runtime) Done() <-chan struct{} { return r.done }

// Err is nil until Done is closed, and nil after Close; otherwise it says why containerd gave up.
func (r *Runtime) Err() error {
	select {
	case <-r.done:
		return r.err
	default:
		return nil
	}
}

// Leave says that those who use the runtime are about to end, and that it is to be closed after them: what they call
// off from now on is wanted again after the next start. What a pull has brought by then stays.
func (r *Runtime) Leave() { r.leaving.Store(true) }

// Close ends containerd within some seconds. Containers go on running, and the next Start on the data folder picks
// them up. It may be called more than once.
func (r *Runtime) Close() error {
	if r.closing.Swap(true) {
		return nil
	}
	r.end.Do(func() { close(r.done) })
	if r.leaveOff != nil {
		r.leaveOff()
	}
	r.late.Wait()
	if r.served != nil {
		r.served.stop(stopLimit)
	}
	if r.taps != nil {
		r.taps.Stop()
	}
	if r.events != nil {
		r.events.stop()
	}
	if r.cancel != nil {
		r.cancel()
	}
	if r.ends != nil {
		r.ends.close()
	}
	r.mute.Store(true)
	err := r.daemon.stop(stopLimit)
	if err == nil && r.launched {
		err = leaveShims(r.daemon)
	}
	if r.leavePath != nil {
		r.leavePath()
	}
	if r.lock != nil {
		r.lock.Close()
	}
	running.Store(false)
	return err
}
