// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/wherryproject/wherry/internal/names"
	"github.com/wherryproject/wherry/internal/names/resolver"
	"github.com/wherryproject/wherry/internal/names/wire"
)

// TestMain is the resolver too, as the server's program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == wire.Word {
		os.Exit(resolver.Main(os.Args[2:], os.Stderr))
	}
	os.Exit(m.Run())
}

// patience says "never", not "slow".
const patience = 30 * time.Second

// wanted is a resolver of the tests' at an address of the machine's own; it is ended with the test.
func wanted(t *testing.T) Resolver {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "names")
	t.Cleanup(func() {
		if err := End(context.Background(), dir); err != nil {
			t.Error(err)
		}
	})
	return Resolver{Dir: dir, Address: netip.MustParseAddr("127.0.0.1"), Command: []string{"/proc/self/exe", wire.Word}, Program: "one"}
}

func started(t *testing.T, r Resolver) netip.AddrPort {
	t.Helper()
	at, _, err := r.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// who is the process that answers.
func who(t *testing.T, r Resolver) wire.Hello {
	t.Helper()
	hello, err := r.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return hello
}

// ask asks for the address of a service, whose name is its namespace's too.
func ask(at netip.AddrPort, service string) (dnsmessage.RCode, error) {
	name := dnsmessage.MustNewName(service + "." + service + ".svc.cluster.local.")
	q := dnsmessage.Message{Header: dnsmessage.Header{ID: 1}, Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	packet, err := q.Pack()
	if err != nil {
		return 0, err
	}
	c, err := net.Dial("udp", at.String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(packet); err != nil {
		return 0, err
	}
	out := make([]byte, 512)
	n, err := c.Read(out)
	if err != nil {
		return 0, err
	}
	var m dnsmessage.Message
	err = m.Unpack(out[:n])
	return m.RCode, err
}

func answers(t *testing.T, at netip.AddrPort, service string, want dnsmessage.RCode) {
	t.Helper()
	if got, err := ask(at, service); err != nil || got != want {
		t.Errorf("%s: %v, %v; want %v", service, got, err, want)
	}
}

func service(n string) names.Change {
	return names.Change{Service: &names.Service{Namespace: n, Name: n, IPs: []netip.Addr{netip.MustParseAddr("10.96.0.5")}}}
}

// fed starts a link that tells of one service, and returns when the resolver knows it.
func fed(t *testing.T, r Resolver, all func() []names.Change) (l *Link, at netip.AddrPort, stop func()) {
	t.Helper()
	moved := make(chan wire.Hello, 8)
	l = New(r, wire.Settings{Zone: names.Zone{Domain: "cluster.local"}}, all, func(_ context.Context, h wire.Hello) error {
		moved <- h
		return nil
	}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { l.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	select {
	case h := <-moved:
		at = h.Address
	case <-time.After(patience):
		t.Fatal("the link does not connect")
	}
	until(t, at, "a", dnsmessage.RCodeSuccess)
	return l, at, stop
}

// until asks until the answer is the wanted one: a change is on its way for a moment.
func until(t *testing.T, at netip.AddrPort, service string, want dnsmessage.RCode) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		got, err := ask(at, service)
		if err == nil && got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v, %v; want %v", service, got, err, want)
		}
	}
}

func one() []names.Change { return []names.Change{service("a")} }

// WL-12, WL-13 (P): the resolver is told the world and each change; it goes on without its server, at the same place, and after its own
// death from its file; the next server finds it.
func TestOutlives(t *testing.T) {
	r := wanted(t)
	l, at, stop := fed(t, r, one)
	l.Send(func() names.Change { return service("b") })
	until(t, at, "b", dnsmessage.RCodeSuccess)
	l.Send(func() names.Change { c := service("b"); c.Gone = true; return c })
	until(t, at, "b", dnsmessage.RCodeNameError)
	first := who(t, r).PID
	stop()
	answers(t, at, "a", dnsmessage.RCodeSuccess)
	l.Send(func() names.Change { t.Error("something is told to nobody"); return names.Change{} })

	if again := started(t, r); again != at || who(t, r).PID != first {
		t.Errorf("it was found at %v, process %d; it was at %v, process %d", again, who(t, r).PID, at, first)
	}
	saved(t, r.Dir)
	kill(t, r.Dir, first)
	if again := started(t, r); again != at || who(t, r).PID == first {
		t.Errorf("after its death it is at %v; it was at %v", again, at)
	}
	answers(t, at, "a", dnsmessage.RCodeSuccess) // nobody has told it
}

// saved returns when the resolver has written its file.
func saved(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		f, err := os.Open(filepath.Join(dir, "world"))
		if err == nil {
			p, err := wire.ReadPicture(f)
			f.Close()
			if err == nil && len(p.World.All()) == 1 {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the world is not kept")
		}
	}
}

// kill ends the process and waits for its lock.
func kill(t *testing.T, dir string, pid int) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// WL-12 (P): a server whose resolver dies has another one at once, which knows the world.
func TestStartedAgain(t *testing.T) {
	r := wanted(t)
	_, at, _ := fed(t, r, one)
	kill(t, r.Dir, who(t, r).PID)
	until(t, at, "a", dnsmessage.RCodeSuccess)
}

// WL-12 (P): a resolver of another program takes over, and no question is lost meanwhile: each is answered by one of the two.
func TestTakenOver(t *testing.T) {
	r := wanted(t)
	_, at, stop := fed(t, r, one)
	stop()
	first := who(t, r).PID
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked atomic.Int32
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				answers(t, at, "a", dnsmessage.RCodeSuccess)
				asked.Add(1)
			}
		})
	}
	for _, program := range []string{"two", "three", "four"} {
		r.Program = program
		if again := started(t, r); again != at {
			t.Errorf("%s is at %v; it was at %v", program, again, at)
		}
		if hello := who(t, r); hello.Program != program || hello.PID == first {
			t.Errorf("%+v answers", hello)
		}
		for before := asked.Load(); asked.Load() < before+100 && !t.Failed(); {
			time.Sleep(0)
		}
	}
	cancel()
	clients.Wait()
	// another address is another matter
	r.Address = netip.MustParseAddr("127.0.0.2")
	if again := started(t, r); again.Addr() != r.Address {
		t.Errorf("it is at %v", again)
	}
	answers(t, started(t, r), "a", dnsmessage.RCodeSuccess)
}

// WL-12 (P): a resolver ends when it is told to, and when its folder is removed; where there is none nothing is to be ended.
func TestEnds(t *testing.T) {
	r := wanted(t)
	if err := End(t.Context(), r.Dir); err != nil {
		t.Error(err)
	}
	started(t, r)
	pid := who(t, r).PID
	if err := End(t.Context(), r.Dir); err != nil {
		t.Error(err)
	}
	gone(t, pid)
	started(t, r)
	pid = who(t, r).PID
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}

// gone waits for a process to end.
func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(patience); syscall.Kill(pid, 0) == nil; {
		if time.Now().After(deadline) {
			t.Fatalf("process %d does not end", pid)
		}
		time.Sleep(time.Millisecond)
	}
}

// WL-12 (P): why a resolver cannot be started is said in its own words.
func TestDoesNotStart(t *testing.T) {
	r := wanted(t)
	r.Address = netip.MustParseAddr("192.0.2.1")
	if _, _, err := r.Start(t.Context()); err == nil || err.Error() != "resolver: error: answer at 192.0.2.1: listen udp 192.0.2.1:0: bind: cannot assign requested address" {
		t.Error(err)
	}
	r.Command = []string{filepath.Join(r.Dir, "missing")}
	if _, _, err := r.Start(t.Context()); err == nil {
		t.Error("a program that is missing was started")
	}
}

// WL-14 (P): who asks after a pod that has not asked is told nothing.
func TestAsk(t *testing.T) {
	r := wanted(t)
	fed(t, r, one)
	if a, err := Ask(t.Context(), r.Dir, "nobody"); err != nil || a.Off || len(a.Asked) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := Ask(t.Context(), t.TempDir(), "nobody"); err == nil {
		t.Error("nobody has answered")
	}
}
