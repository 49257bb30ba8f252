// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/filelock"
	"github.com/wherryproject/wherry/internal/store/inspect"
)

const (
	// maxRequestBytes is etcd's limit for one write: an object of 1.5 MiB, which the API server holds objects to, with
	// its key and the transaction around it.
	maxRequestBytes = (1536 + 64) * 1024
	// needBytes is the room etcd needs to start: two write-ahead segments of 64 MB, laid out in advance.
	needBytes = 160 << 20
	// startTimeout covers a replay of a large write-ahead log on a slow disk.
	startTimeout = 60 * time.Second
	// maxSocketPath is the longest path a unix socket may have on Linux (sun_path), without its closing zero.
	maxSocketPath = 107
)

// Config says where the store lives.
type Config struct {
	Dir    string // etcd's own folder; made when missing
	Logger *slog.Logger
	// Inspector is the command that reads a database file in a process of its own (inspect.Child); empty: it is read in
	// this one, which a damaged one may end.
	Inspector []string
	// Had says that the folder has had a store that answered: files that hold nothing are damage then, and not those of
	// a first start that was killed.
	Had bool
	// Quota is how many bytes objects and their history may take before users can create no more; 0: 6 GiB.
	Quota int64
	// Failed, if given, is called once when a running etcd gives up: the disk is full (ErrDiskFull) or broken. The
	// store does not answer any more then, and what waits for it waits for ever; the process ought to end.
	Failed func(error)
}

// Etcd is a running embedded etcd. Its methods are safe for concurrent use.
type Etcd struct {
	server   *embed.Etcd
	log      *core
	verdict  *verdict
	endpoint string
	database string // the file with all objects
	ready    bool   // it has answered
	lock     *os.File
	dir      *os.File // keeps /proc/self/fd paths of long folders valid
	keeper   *keeper  // nil until etcd answers
	rest     func()   // ends the keeper and waits for it
	pulse    *pulse
	clients  clients

	purging   *purge
	closeOnce sync.Once
	closeErr  error
}

// Start runs etcd on cfg.Dir and returns when it answers. Errors say what to do: the folder is in use by another server
// (ErrLocked), the disk is full (ErrDiskFull), or what etcd reported.
func Start(ctx context.Context, cfg Config) (_ *Etcd, err error) {
	if err := errors.Join(os.MkdirAll(cfg.Dir, 0o700), os.Chmod(cfg.Dir, 0o700)); err != nil {
		return nil, explain(cfg.Dir, err)
	}
	e := &Etcd{log: newCore(cfg.Logger), database: inspect.DatabaseFile(cfg.Dir), pulse: newPulse()}
	e.purging = newPurge(cfg.Dir, e.log)
	e.verdict = &verdict{dead: make(chan struct{}), missed: e.purging.missed, fail: func(err error) {
		if cfg.Failed != nil {
			cfg.Failed(explain(cfg.Dir, err))
		}
	}}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	if e.lock, err = lockDir(cfg.Dir); err != nil {
		return nil, err
	}
	if err := checkRoom(cfg.Dir); err != nil {
		return nil, err
	}
	if err := sound(ctx, cfg); err != nil {
		return nil, err
	}
	client, peer, err := e.sockets(cfg.Dir)
	if err != nil {
		return nil, err
	}
	e.endpoint = "unix://" + client.Path
	quota := cmp.Or(cfg.Quota, defaultQuota)
	c := configure(cfg.Dir, hardQuota(quota), e.log, e.verdict, client, peer)
	c.GRPCAdditionalServerOptions = e.watchReading()
	c.BackendBatchInterval = slowCommit
	slowDown()
	if err := e.open(ctx, cfg.Dir, c); err != nil {
		return nil, err
	}
	e.pulse.start(e.server.Server, e.reading)
	e.keep(newKeeper(e.server.Server, cfg.Dir, quota, hardQuota(quota), cfg.Logger))
	e.purging.start()
	return e, nil
}

// keep has k make room from now on, the first time before it returns: nothing of the server starts with a store that
// refuses writes.
func (e *Etcd) keep(k *keeper) {
	ctx, cancel := context.WithCancel(context.Background())
	first, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = e.reading(func() { // the verdict has it already
			k.round(ctx)
			close(first)
			k.run(ctx)
		})
	}()
	e.keeper, e.rest = k, func() {
		cancel()
		select {
		case <-done:
		case <-e.verdict.dead: // what it waits for may never come
		}
	}
	select {
	case <-first:
	case <-e.verdict.dead:
	}
}

// memberName is the only member's name.
const memberName = "wherry"

// peerHost is advertised to peers, of which there are none. A unix socket cannot be advertised; etcd wants an address
// all the same and keeps the first one it was given in its data, so it must not change between starts.
const peerHost = "localhost:0"

func advertisedPeer() string { return "http://" + peerHost }

func configure(dir string, hard int64, log *core, last *verdict, client, peer url.URL) *embed.Config {
	c := embed.NewConfig()
	c.Name = memberName
	c.Dir = dir
	// A lone member has nobody to hear from, and elects itself when asked to (elect): its clock has next to nothing to
	// do. It bounds how short a lease may be (8 s; no Kubernetes object has one below a minute), and how long a request
	// may wait for a disk that hangs (15 s).
	c.TickMs = 1000
	c.ElectionMs = 5000
	c.ListenClientUrls = []url.URL{client}
	c.AdvertiseClientUrls = []url.URL{client}
	c.ListenPeerUrls = []url.URL{peer}
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: peerHost}}
	c.InitialCluster = c.Name + "=" + advertisedPeer()
	c.MaxRequestBytes = maxRequestBytes
	c.QuotaBackendBytes = hard
	c.MaxWalFiles, c.MaxSnapFiles = 0, 0 // this package removes old ones: etcd would give up if it could not
	c.SnapshotCount = 5000               // bounds memory: etcd keeps this many entries
	c.EnableGRPCGateway = false
	c.StrictReconfigCheck = false
	c.CompactHashCheckTime = time.Hour
	c.DowngradeCheckTime = time.Hour // one member: nothing to agree on
	// Watches without events learn the revision this often, so that they can resume after a compaction.
	c.WatchProgressNotifyInterval = time.Minute
	// A request that takes a tenth of a second, which etcd warns of, is a busy machine's; one of a second is a slow
	// disk's.
	c.WarningApplyDuration, c.WarningUnaryRequestDuration = time.Second, time.Second
	c.Logger = "zap"
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(log, zap.WithFatalHook(last), zap.WithPanicHook(last)))
	return c
}

// Endpoint is where clients of the same process reach etcd, as etcd clients want it: unix:///….
func (e *Etcd) Endpoint() string { return e.endpoint }

// Done is closed when etcd has stopped, by Close or by itself.
func (e *Etcd) Done() <-chan struct{} { return e.server.Server.StopNotify() }

// Close stops etcd and frees the folder. It may be called more than once.
func (e *Etcd) Close() error {
	e.closeOnce.Do(func() {
		e.clients.close()
		e.purging.stop()
		e.pulse.stop(e.verdict.dead)
		if e.rest != nil {
			e.rest()
		}
		if e.server != nil {
			select {
			case <-e.verdict.dead: // it would wait for the goroutine that gave up
				e.closeErr = e.verdict.err
				return
			default:
			}
			e.log.mute() // etcd reports each listener that closes as an error
			e.closeErr = e.end()
		}
		for _, f := range []*os.File{e.dir, e.lock} {
			if f != nil {
				e.closeErr = errors.Join(e.closeErr, f.Close())
			}
		}
	})
	return e.closeErr
}

// sockets names the client and the peer socket in dir. A folder whose path is too long for a socket address is reached
// through /proc/self/fd, which only this process can do: all the better.
func (e *Etcd) sockets(dir string) (client, peer url.URL, err error) {
	base, err := filepath.Abs(dir)
	if err != nil {
		return client, peer, err
	}
	if len(filepath.Join(base, "client.sock")) > maxSocketPath {
		if e.dir, err = os.Open(base); err != nil {
			return client, peer, err
		}
		base = fmt.Sprintf("/proc/self/fd/%d", e.dir.Fd())
	}
	client = url.URL{Scheme: "unix", Path: base + "/client.sock"}
	// etcd takes the peer socket's path from the host part alone; from an empty one it would bind an abstract socket
	// that every local user can reach.
	peer = url.URL{Scheme: "unix", Host: base + "/peer.sock"}
	return client, peer, nil
}

// ErrLocked says that another server has the folder open.
var ErrLocked = errors.New("in use by another server")

// ErrDiskFull says that the file system of the folder has no room.
var ErrDiskFull = errors.New("disk full")

// ErrDiskFailed says that the disk of the folder did not read or write what it was asked to, or does not let itself be
// written to any more.
var ErrDiskFailed = errors.New("disk failure")

func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, explain(dir, err)
	}
	if err := filelock.Take(f, filelock.Patience, filelock.Nobody); err != nil {
		f.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, fmt.Errorf("store %s: %w: stop that server, or choose another data folder", dir, ErrLocked)
		}
		return nil, explain(dir, err)
	}
	return f, nil
}

func checkRoom(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return explain(dir, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "member")); err == nil {
		return nil // its segments are laid out already
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < needBytes {
		return fmt.Errorf("store %s: %w: %d MB are free, a new store needs %d MB", dir, ErrDiskFull, free>>20,
			needBytes>>20)
	}
	return nil
}

func explain(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("store %s: %w: %w", dir, ErrDiskFull, err)
	case failedDisk(err):
		return fmt.Errorf("store %s: %w: %w", dir, ErrDiskFailed, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("store %s: %w: run it with sudo, or choose a data folder that you may write to with --data-dir", dir, err)
	}
	return fmt.Errorf("store %s: %w", dir, err)
}

// failedDisk reports whether an error is what the kernel says of a disk that fails, a file system that is damaged, or
// one that it has made read-only because of that.
func failedDisk(err error) bool {
	for _, e := range []syscall.Errno{syscall.EIO, syscall.EUCLEAN, syscall.EROFS, syscall.ENXIO, syscall.ENODEV} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
