// SPDX-License-Identifier: Apache-2.0

package failpoints

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/wherryproject/wherry/test/e2e"
)

// binary is what tools/failpoints.sh builds.
const binary = "../../bin/.failpoints/wherry"

// TestFailpoints proves RS-07, SC-19, PL-02 and PL-10 at every single place where the server changes something.
func TestFailpoints(t *testing.T) {
	world := newWorld(t)
	seed, long, only := settings(t)
	begin := time.Now()
	t.Run("first start", func(t *testing.T) {
		tr := newTrial(t)
		passed := tr.rehearseStart(world)
		tr.faults = draw(passed, fault.deadly, only, seed)
		t.Logf("%d places, %d deaths", len(passed), len(tr.faults))
		tr.beBorn(world, begin.Add(long/6))
	})
	t.Run("life", func(t *testing.T) {
		tr := newTrial(t)
		tr.mountRemote()
		var err error
		if tr.srv, err = e2e.NewServer(t.Context(), world, e2e.ServerOptions{Env: []string{"FAILPOINTS_DIR=" + string(tr.ledger)}}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tr.close)
		passed := tr.rehearse()
		tell(t, passed)
		tr.faults = draw(passed, fault.deadly, only, seed)
		t.Logf("%d places, %d deaths", len(passed), len(tr.faults))
		other := tr.bystand()
		tr.suffer(begin.Add(long * 6 / 10))
		other.unmoved()
		tr.strict = false
		tr.faults = draw(passed, fault.failing, only, seed)
		t.Logf("%d failures", len(tr.faults))
		tr.suffer(begin.Add(long * 8 / 10))
		other.unmoved()
		tr.alone = true
		passed = tr.recorded(tr.another)
		tell(t, passed)
		tr.faults = draw(passed, fault.beside, only, seed)
		t.Logf("%d deaths and failures of shims and the resolver", len(tr.faults))
		tr.suffer(begin.Add(long))
		other.unmoved()
		other.leave()
	})
}

// newWorld finds the server with failpoints.
func newWorld(t *testing.T) *e2e.World {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the failpoints' test makes containers; it needs root")
	}
	path, err := filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("there is no server with failpoints: run tools/failpoints.sh (%v)", err)
	}
	t.Setenv("WHERRY", path)
	klog.SetLogger(logr.Discard()) // clients whose server dies have a lot to say
	world, err := e2e.NewWorld(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = world.Close() })
	return world
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	ledger, err := newLedger(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &trial{t: t, ledger: ledger, hostPort: int32(e2e.FreePort(t)), had: map[string]bool{}, armed: 12, strict: true}
}

// tell lists the places, if it is asked to.
func tell(t *testing.T, passed map[string]int) {
	if os.Getenv("FAILPOINTS_LIST") == "" {
		return
	}
	for _, place := range slices.Sorted(maps.Keys(passed)) {
		t.Logf("%4d %s", passed[place], place)
	}
}

// settings are the seed, how long it may take, and which faults.
func settings(t *testing.T) (seed uint64, long time.Duration, only *regexp.Regexp) {
	seed, long = uint64(time.Now().UnixNano()), 40*time.Second
	var err error
	if text := os.Getenv("FAILPOINTS_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	switch text := os.Getenv("FAILPOINTS"); text {
	case "":
	case "all":
		long = 24 * time.Hour
	default:
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if only, err = regexp.Compile(os.Getenv("FAILPOINTS_ONLY")); err != nil {
		t.Fatal(err)
	}
	t.Logf("FAILPOINTS=%s FAILPOINTS_SEED=%d FAILPOINTS_ONLY='%s'", long, seed, only)
	return seed, long, only
}

// rehearse lives one life in peace, with a start in it, and tells which places it passed.
func (tr *trial) rehearse() map[string]int {
	tr.t.Helper()
	client := tr.srv.Client.CoreV1()
	if _, err := client.Namespaces().Create(tr.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		tr.t.Fatal(err)
	}
	_, err := client.Secrets(namespace).Create(tr.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}, StringData: map[string]string{"word": "secret"}},
		metav1.CreateOptions{})
	if err != nil {
		tr.t.Fatal(err)
	}
	return tr.recorded(tr.another)
}

// another starts the server again and lives a life with it.
func (tr *trial) another() {
	tr.t.Helper()
	tr.trail = nil
	tr.srv.Kill()
	if tr.alone {
		tr.endResolver()
	}
	tr.live()
}

// recorded tells which places are passed meanwhile.
func (tr *trial) recorded(do func()) map[string]int {
	tr.t.Helper()
	if err := tr.ledger.record(); err != nil {
		tr.t.Fatal(err)
	}
	do()
	passed, err := tr.ledger.passed()
	if err := errors.Join(err, tr.ledger.stop()); err != nil {
		tr.t.Fatal(err)
	}
	return passed
}

// rehearseStart makes a new data folder in peace, and tells which places its first start passed.
func (tr *trial) rehearseStart(world *e2e.World) map[string]int {
	tr.t.Helper()
	return tr.recorded(func() { tr.birth(world) })
}

// birth starts a server on a new data folder, purges it, and looks for what is left.
func (tr *trial) birth(world *e2e.World) {
	tr.t.Helper()
	tr.lives++
	var err error
	if tr.srv, err = e2e.UnstartedServer(world, e2e.ServerOptions{}); err != nil {
		tr.t.Fatal(err)
	}
	purged := false
	defer func() { // a test that fails ends here
		if !purged {
			tr.srv.Kill()
			tr.srv.Setenv()
			_ = tr.srv.Purge(context.WithoutCancel(tr.t.Context()))
		}
	}()
	tr.start()
	_, err = tr.srv.Client.CoreV1().Namespaces().Create(tr.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && tr.settle("create a namespace") == 0 {
		tr.fatal("create a namespace", err)
	}
	tr.srv.Kill()
	tr.purge()
	purged = true
}

// purge purges what the server has made, again and again while it dies of faults itself (RS-08).
func (tr *trial) purge() {
	tr.t.Helper()
	for {
		err := tr.srv.Purge(context.WithoutCancel(tr.t.Context()))
		if err == nil {
			return
		}
		if tr.settle("purge") == 0 {
			tr.fatal("purge", err)
		}
	}
}

// beBorn makes data folders until the server has died at every place of its first start.
func (tr *trial) beBorn(world *e2e.World, until time.Time) {
	tr.t.Helper()
	for idle := 0; len(tr.faults) > 0 && idle < 3 && time.Now().Before(until); {
		before := len(tr.had)
		tr.trail = nil
		tr.birth(world)
		if idle++; len(tr.had) > before {
			idle = 0
		}
	}
	tr.t.Logf("the server died %d times", len(tr.had))
}

// suffer lives lives until all faults have happened, those that are left do not happen any more, or the time is over.
func (tr *trial) suffer(until time.Time) {
	tr.t.Helper()
	for idle := 0; len(tr.faults) > 0 && idle < 3 && time.Now().Before(until); {
		before := len(tr.had)
		tr.another()
		if idle++; len(tr.had) > before {
			idle = 0
		}
	}
	if time.Now().Before(until) {
		for _, f := range tr.faults {
			tr.t.Logf("not reached: %s", f)
		}
	}
	tr.t.Logf("%d faults in %d lives", len(tr.had), tr.lives)
}

// close purges the server, after a start without faults: purge asks the runtime.
func (tr *trial) close() {
	if tr.t.Failed() {
		file := filepath.Join(os.TempDir(), "failpoints-"+strconv.FormatInt(time.Now().UnixNano(), 10)+".log")
		tr.t.Logf("the server's log is kept: %s (%v)", file, os.WriteFile(file, []byte(tr.srv.Log()), 0o644))
	}
	tr.srv.Kill()
	tr.srv.Setenv()
	if err := tr.srv.Start(context.Background()); err != nil {
		tr.t.Error(err)
	}
	if err := tr.srv.Purge(context.Background()); err != nil {
		tr.t.Error(err)
	}
}
