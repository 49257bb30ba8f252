// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/store/inspect"
	"github.com/wherryproject/wherry/test/simulate/disk"
)

var (
	seeds   = flag.Int("seeds", 10, "how many worlds to run")
	seed    = flag.Uint64("seed", 0, "the one world to run, and the first of several")
	verbose = flag.Bool("log", false, "show the server's log")
)

// segmentBytes is the size of a file of etcd's log: it begins a new one some times in every world, not after hours.
const segmentBytes = 256 << 10

// databaseWord makes the test program read a database file instead of running tests.
const databaseWord = "look-at-database"

// TestMain takes away a handler of the library that slows errors down by the time since the last one, which was in another world.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == disk.ChildWord {
		if err := disk.Child(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == databaseWord {
		if err := inspect.Child(os.Stdout, os.Args[2]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	wal.SegmentSizeBytes = segmentBytes
	utilruntime.ErrorHandlers = nil
	// The library ends the process when a hook of its start fails, as one does if etcd dies meanwhile: here only the hook.
	klog.OsExit = func(int) { runtime.Goexit() }
	os.Exit(m.Run())
}

// TestWorlds lets servers live and die in random worlds. What a client was told stays true, nothing runs twice, watchers see one
// history, and in the end everything that was asked for is done (RS-07, PL-02, PL-04, PL-10).
func TestWorlds(t *testing.T) {
	if os.Getenv("GOGC") == "" { // tools/alike has it off: when the collector comes is chance
		defer debug.SetGCPercent(debug.SetGCPercent(400)) // a quarter of the time is the collector's otherwise
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // with two processors it is theirs to decide who comes first, and no run is like another
	first, n := uint64(1), *seeds
	if *seed > 0 {
		first = *seed
	}
	var d *disk.Disk
	if n > 1 || hasDisk(first) {
		d = startDisk(t)
	}
	for i := range uint64(n) {
		t.Run(fmt.Sprint(first+i), func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, first+i)
			dir := t.TempDir()
			d := diskFor(t, d, first+i, filepath.Join(dir, "data"))
			synctest.Test(t, func(t *testing.T) {
				never := ownNever()
				newWorld(t, dir, d, first+i).run(first + i)
				close(never)
			})
			if t.Failed() {
				t.Logf("again: SEEDS=1 FIRST=%d tools/simulate.sh", first+i)
			}
		})
	}
}

// hasDisk tells whether a world has a disk: every second does. The others have an ordinary folder, nothing of which is ever synced: they
// are quicker.
func hasDisk(seed uint64) bool { return seed%2 == 0 }

// startDisk starts the process that serves the disks. Where that cannot be, it says why, and the worlds have none.
func startDisk(t *testing.T) *disk.Disk {
	t.Helper()
	d, err := disk.Start(os.Stderr)
	if err != nil {
		fmt.Println("the worlds have no faulty disks:", err)
		return nil
	}
	t.Cleanup(func() {
		counts, err := d.Counts()
		if err := errors.Join(err, d.Close()); err != nil {
			t.Error(err)
		}
		t.Log("operations of the disks: ", counts)
	})
	return d
}

// diskFor mounts the disk of a world, if it has one.
func diskFor(t *testing.T, d *disk.Disk, seed uint64, dir string) *disk.Disk {
	t.Helper()
	if d == nil || !hasDisk(seed) {
		return nil
	}
	if err := errors.Join(os.Mkdir(dir, 0o700), d.Mount(dir)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// ownNever gives the bubble a channel of its own for the loops of the libraries that never end: only with it time goes on.
func ownNever() chan struct{} {
	never := make(chan struct{})
	wait.NeverStop = never
	return never
}

func newWorld(t *testing.T, dir string, d *disk.Disk, seed uint64) *world {
	w := &world{t: t, seed: seed, dir: dir, home: filepath.Join(dir, "data"), disk: d, rng: rand.New(rand.NewPCG(seed, 1)), up: make(chan struct{}), log: slog.New(slog.DiscardHandler)}
	if *verbose {
		w.log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	var err error
	w.self, err = os.Executable()
	w.trust(err)
	w.fake = critest.NewFake(critest.Config{AnyImage: true, Script: act(seed)})
	for _, m := range []string{"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer", "StopPodSandbox", "RemovePodSandbox"} {
		w.fake.Delay(m, time.Duration(w.rng.IntN(1500))*time.Millisecond)
	}
	w.fake.DetachCancelled(w.rng.IntN(2) == 0)
	w.truth = w.fake.Client()
	w.misfortune = &misfortune{seed: seed, seen: map[string]int{}, trace: &trace{log: w.log}}
	w.judge = &judge{truth: w.truth, begin: time.Now(), never: map[string]bool{}, runs: map[string]string{}}
	return w
}

// run is the life of the world: some minutes of misfortune, then calm.
func (w *world) run(seed uint64) {
	w.boot()
	l := newLoad(w, seed)
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	for i := range 3 {
		rng := rand.New(rand.NewPCG(seed, 100+uint64(i)))
		clients.Go(func() { l.count(ctx, fmt.Sprintf("c%d", i), rng) })
	}
	for range 2 {
		o := &onlooker{w: w, seen: map[string]int64{}}
		clients.Go(func() { o.look(ctx) })
	}
	for i := range 4 + w.rng.IntN(6) {
		pod, rng := l.pod(i), rand.New(rand.NewPCG(seed, 200+uint64(i)))
		clients.Go(func() {
			pause(ctx, time.Duration(rng.IntN(60_000))*time.Millisecond)
			l.live(ctx, pod, rng)
		})
	}
	w.misfortune.store.Store([]uint64{0, 0, 10, 50}[w.rng.IntN(4)])
	w.misfortune.calls.Store([]uint64{0, 0, 20, 80}[w.rng.IntN(4)])
	if w.disk != nil {
		clients.Go(func() { w.writeBack(ctx.Done()) })
	}
	for range 3 + w.rng.IntN(8) {
		time.Sleep(time.Duration(w.rng.IntN(30_000)) * time.Millisecond)
		w.strike()
		w.again()
		if err := w.dead(); err != nil {
			w.judge.fault("the disk works, and etcd gave up: %v", err)
		}
	}
	w.misfortune.store.Store(0)
	w.misfortune.calls.Store(0)
	w.calm(3 * time.Minute)
	cancel()
	clients.Wait()
	if !w.lost {
		w.settle(l)
	}
	w.kill(processEnds)
	w.t.Log(w.misfortune.trace)
	for _, fault := range w.judge.faults {
		w.t.Error(fault)
	}
}

// strike is one misfortune.
func (w *world) strike() {
	if w.disk != nil && w.rng.IntN(3) > 0 {
		w.harm()
		return
	}
	switch w.rng.IntN(6) {
	case 0, 1, 2:
		w.kill(processEnds)
		time.Sleep(time.Duration(w.rng.IntN(20_000)) * time.Millisecond)
		w.boot()
	case 3:
		w.fake.Restart()
	case 4:
		w.fake.Down()
		time.Sleep(time.Duration(w.rng.IntN(10_000)) * time.Millisecond)
		w.fake.Up()
	case 5:
		for _, c := range w.fake.Containers() {
			if w.rng.IntN(3) == 0 {
				_ = w.fake.Exit(c.ID, 137) // where it does not run, nothing happens
			}
		}
	}
}

// settle looks whether everything that was asked for has come to its end, deletes all pods, and looks what is left.
func (w *world) settle(l *load) {
	ctx := context.Background()
	w.calm(10 * time.Minute) // longer than the longest back-off
	client, err := w.client(ctx)
	if err != nil {
		w.judge.fault("no client: %v", err)
		return
	}
	for _, pod := range l.present(ctx, client) {
		if l.pods[pod.Name] {
			w.judge.fault("pod %s is still there %v after its deletion was acknowledged", pod.Name, time.Since(w.judge.begin))
		}
		if pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "" {
			w.judge.fault("pod %s is still pending: %+v", pod.Name, pod.Status)
		}
	}
	if err := client.CoreV1().Pods(space).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		w.judge.fault("the calm world does not delete its pods: %v", err)
	}
	w.calm(5 * time.Minute)
	if client, err = w.client(ctx); err != nil {
		w.judge.fault("no client: %v", err)
		return
	}
	left, err := client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		w.judge.fault("%d pods are left after their deletion (%v)", len(left.Items), err)
	}
	containers, err := w.truth.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil || len(containers.GetContainers()) > 0 {
		w.judge.fault("%d containers are left after their pods' deletion (%v)", len(containers.GetContainers()), err)
	}
	if ids, _ := w.fake.Sandboxes(); len(ids) > 0 {
		w.judge.fault("%d sandboxes are left after their pods' deletion", len(ids))
	}
}
