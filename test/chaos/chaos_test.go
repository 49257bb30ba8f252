// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/test/e2e"
)

const slots = 30

// storm is one run.
type storm struct {
	*e2e.Space
	t    *testing.T
	kind kind
	rand *rand.Rand
	now  [slots]*actor // who is wanted
	all  []*actor
	did  map[string]int

	aside  sync.WaitGroup // what goes on beside the storm: looks into pods, and processes that stand still for a while
	excuse excuse
	outage sync.Mutex  // held while what the server needs is not there
	blind  atomic.Bool // the runtime is not there to see what ends
	ledger *ledger
	fresh  e2e.Usage // of a server that has no pods
}

// actor is one pod that was ever created.
type actor struct {
	pod   *corev1.Pod
	shape shape
	stage *e2e.Stage
}

// TestChaos proves SC-02, SC-05, SC-06, SC-19, PL-02, PL-10, PID-06, RS-01, RS-02, RS-05 and RS-09 under fire, one kind of storm after
// another.
func TestChaos(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the chaos test makes containers; it needs root")
	}
	world, err := e2e.NewWorld(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = world.Close() })
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	long := 40 * time.Second
	if text := os.Getenv("CHAOS"); text != "" {
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	wanted := []string{"embedded", "external"}
	if text := os.Getenv("CHAOS_KINDS"); text != "" {
		wanted = strings.Split(text, ",")
	}
	for _, name := range wanted {
		i := slices.IndexFunc(kinds(), func(k kind) bool { return k.name == name })
		if i < 0 {
			t.Fatalf("CHAOS_KINDS: there is no storm %q", name)
		}
		t.Run(name, func(t *testing.T) {
			t.Logf("CHAOS=%s CHAOS_SEED=%d CHAOS_KINDS=%s", long, seed, name)
			rage(t, world, kinds()[i], seed, long/time.Duration(len(wanted)))
		})
	}
}

// rage is one storm and what is found after it.
func rage(t *testing.T, world *e2e.World, k kind, seed uint64, long time.Duration) {
	own := *world
	options := k.prepare(t, &own)
	options.Args = append(options.Args, "--profiling", "--secure-port", strconv.Itoa(e2e.FreePort(t)))
	srv, err := e2e.NewServer(t.Context(), &own, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, bad := range srv.Complaints() {
			t.Error(bad)
		}
		if t.Failed() {
			file := filepath.Join(os.TempDir(), fmt.Sprintf("chaos-%d.log", time.Now().UnixNano()))
			t.Logf("the server's log is kept: %s (%v)", file, os.WriteFile(file, []byte(srv.Log()), 0o644))
		}
		if err := srv.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s := &storm{Space: srv.Space(t), t: t, kind: k, rand: rand.New(rand.NewPCG(seed, 0)), did: map[string]int{}}
	s.fresh = s.measure()
	s.ledger = newLedger(s)
	for i := range slots {
		s.create(i)
	}
	s.blow(time.Now().Add(long))
	begun := time.Now()
	step := func(name string, do func()) {
		began := time.Now()
		do()
		t.Logf("%s: %s took %s", k.name, name, time.Since(began).Round(100*time.Millisecond))
	}
	step("what goes on beside", s.aside.Wait)
	step("calming down", s.calm)
	s.judge()
	step("the ledger", s.ledger.close)
	t.Logf("%s: after %d pods: %v; %s", k.name, len(s.all), s.did, s.ledger)
	step("leaving", s.leave)
	step("becoming flat", s.flat)
	t.Logf("%s: settled in %s", k.name, time.Since(begun).Round(100*time.Millisecond))
}

// create puts a new pod into a slot.
func (s *storm) create(slot int) {
	s.t.Helper()
	shape := shapes()[slot%len(shapes())]
	a := &actor{shape: shape, stage: s.NewStage(s.t)}
	port := int32(7000)
	if s.kind.outside { // all pods share the machine's ports
		port = 10000 + int32(len(s.all)%5000)*ports
	}
	pod := shape.make(a.stage, fmt.Sprintf("%s-%d", shape.name, len(s.all)), port)
	pod.Spec.HostNetwork = s.kind.outside
	s.try("create pod "+pod.Name, func() error {
		made, err := s.TryCreate(pod)
		if apierrors.IsAlreadyExists(err) { // of an attempt whose answer was lost
			made, err = s.Client.CoreV1().Pods(s.Namespace).Get(s.Context(), pod.Name, metav1.GetOptions{})
		}
		a.pod = made
		return err
	})
	s.now[slot] = a
	s.all = append(s.all, a)
}

// blow does bad things until the time is over. In the last third the server itself is left alive, so that what it loses by and by shows.
func (s *storm) blow(until time.Time) {
	server := time.Now().Add(8 * time.Second)
	spared := until.Add(-time.Until(until) / 3)
	for time.Now().Before(until) {
		time.Sleep(time.Duration(200+s.rand.IntN(600)) * time.Millisecond) // misfortune keeps no events to wait for
		switch n := s.rand.IntN(100); {
		case time.Now().After(server) && time.Now().Before(spared):
			s.endServer()
			server = time.Now().Add(time.Duration(5+s.rand.IntN(15)) * time.Second)
		case n < 30:
			s.shoot("container", "up")
		case n < 41:
			s.shoot("pause", "up")
		case n < 48:
			s.shoot("shim", "up")
		case n < 53:
			s.stall()
		case n < 56 && !s.kind.outside:
			s.did["lose network"]++
			if err := s.LoseNetwork(); err != nil {
				s.t.Fatal(err)
			}
		case n < 64:
			s.look()
		case n < 72 && len(s.kind.misfortunes) > 0:
			s.kind.misfortunes[s.rand.IntN(len(s.kind.misfortunes))](s)
		default:
			s.replace(s.rand.IntN(slots))
		}
	}
}

// endServer kills the server, tells it to end, or lets it stand still for a while; things die meanwhile.
func (s *storm) endServer() {
	what := []string{"kill server", "kill server", "kill server", "stop server", "stall server"}[s.rand.IntN(5)]
	s.did[what]++
	s.note("kill-server")
	end := s.excuse.begin()
	defer end()
	switch what {
	case "kill server":
		s.ledger.killed()
		s.Kill()
	case "stop server":
		if err := s.Stop(); err != nil { // RS-08: in time, whatever is away
			s.t.Error(err)
		}
	case "stall server":
		if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
			s.t.Fatal(err)
		}
	}
	for range s.rand.IntN(4) {
		s.shoot([]string{"container", "pause", "shim"}[s.rand.IntN(3)], "down")
	}
	if what == "stall server" {
		time.Sleep(time.Duration(s.rand.IntN(3000)) * time.Millisecond)
		if err := syscall.Kill(s.PID(), syscall.SIGCONT); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	s.outage.Lock() // an etcd or a runtime that is down ends the start; that it says so is another test's
	defer s.outage.Unlock()
	if err := s.Server.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// note puts a line into every pod's journal.
func (s *storm) note(what string) {
	for _, a := range s.all {
		a.stage.Note(what)
	}
}

// shoot kills one process of a kind, while the server is up or down.
func (s *storm) shoot(kind, server string) {
	pids, err := s.Processes(kind)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(pids) == 0 {
		return
	}
	if s.blind.Load() {
		server = "down"
	}
	s.note("shoot-" + kind + "-" + server)
	if syscall.Kill(pids[s.rand.IntN(len(pids))], syscall.SIGKILL) == nil {
		s.did["kill "+kind]++
	}
}

// replace deletes a slot's pod, now and then by force, and makes another.
func (s *storm) replace(slot int) {
	options := metav1.DeleteOptions{}
	what := "delete"
	if s.rand.IntN(4) == 0 {
		options.GracePeriodSeconds = ptr.To[int64](0)
		what = "delete by force"
	}
	s.did[what]++
	s.remove(s.now[slot].pod.Name, options)
	s.create(slot)
}

func (s *storm) remove(pod string, options metav1.DeleteOptions) {
	s.try("delete pod "+pod, func() error {
		err := s.Client.CoreV1().Pods(s.Namespace).Delete(s.Context(), pod, options)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
