// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/wherryproject/wherry/internal/leaktest"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// journal records what components do.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, s)
}

func (j *journal) component(name string, err error, after ...string) component {
	return component{name: name, after: after,
		start: func(context.Context) error { j.add("+" + name); return err },
		stop:  func(context.Context) error { j.add("-" + name); return nil }}
}

func TestComponentsStartInOrderAndStopInReverse(t *testing.T) {
	defer leaktest.None(t, goleak.IgnoreCurrent()) // the library never ends its check of the log
	j := &journal{}
	g := &group{log: quiet(), list: []component{j.component("a", nil), j.component("b", nil, "a"),
		j.component("c", nil, "b"), j.component("d", nil, "a", "c")}}
	if err := g.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(j.lines, " "); got != "+a +b +c +d -d -c -b -a" {
		t.Errorf("did %s", got)
	}
}

// What does not depend on one another starts at the same time: each of two waits here for the other.
func TestIndependentComponentsStartTogether(t *testing.T) {
	defer leaktest.None(t, goleak.IgnoreCurrent()) // the library never ends its check of the log
	left, right := make(chan struct{}), make(chan struct{})
	meet := func(mine, other chan struct{}) func(context.Context) error {
		return func(context.Context) error {
			close(mine)
			select {
			case <-other:
				return nil
			case <-time.After(10 * time.Second):
				return errors.New("alone")
			}
		}
	}
	g := &group{log: quiet(), list: []component{{name: "l", start: meet(left, right)},
		{name: "r", start: meet(right, left)}}}
	if err := g.start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A failed start stops what came up, does not start what comes after, and tells the cause.
func TestFailedStart(t *testing.T) {
	defer leaktest.None(t, goleak.IgnoreCurrent()) // the library never ends its check of the log
	j := &journal{}
	boom := errors.New("boom")
	waits := component{name: "slow", start: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
	g := &group{log: quiet(), list: []component{j.component("a", nil), j.component("b", boom, "a"),
		j.component("c", nil, "b"), waits}}
	if err := g.start(t.Context()); !errors.Is(err, boom) || err.Error() != "b: boom" {
		t.Errorf("start: %v", err)
	}
	if err := g.stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := strings.Join(j.lines, " "); got != "+a +b -a" {
		t.Errorf("did %s", got)
	}
}

func TestListOrderIsChecked(t *testing.T) {
	j := &journal{}
	for _, list := range [][]component{
		{j.component("a", nil, "b"), j.component("b", nil)},
		{j.component("a", nil), j.component("a", nil)},
	} {
		if err := checkOrder(list); err == nil {
			t.Errorf("took %v", list)
		}
	}
	s, err := New(Defaults(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]component{"server": s.components(), "agent": s.agentComponents()} {
		if err := checkOrder(list); err != nil {
			t.Errorf("the %s's own list: %v", name, err)
		}
	}
}

func TestBackground(t *testing.T) {
	defer leaktest.None(t, goleak.IgnoreCurrent()) // the library never ends its check of the log
	failed := make(chan error, 1)
	b := spawn("loop", failed, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	if err := b.stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	spawn("loop", failed, func(context.Context) error { return nil })
	if err := <-failed; err == nil || err.Error() != "loop: ended unexpectedly" {
		t.Errorf("failed: %v", err)
	}
}

// Every start that cannot be has an exit code, says what is in the way and what to do.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	held, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.release()
	if !Locked(dir) || Locked(t.TempDir()) {
		t.Error("Locked is wrong")
	}
	_, locked := lockFolder(dir)

	newer := t.TempDir()
	if err := checkVersion(newer, stamp{Format: format + 1, Wherry: "v9.9.9"}); err != nil {
		t.Fatal(err)
	}
	garbled := t.TempDir()
	if err := os.WriteFile(filepath.Join(garbled, "version"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port

	cases := map[string]struct {
		err  error
		code int
		want []string
	}{
		"not root":      {checkRoot(1000, needsRoot), ExitNotRoot, []string{"needs root", "sudo"}},
		"folder locked": {locked, ExitFolderLocked, []string{dir, fmt.Sprintf("pid %d", os.Getpid()), "--data-dir"}},
		"newer version": {checkVersion(newer, stamp{Format: format, Wherry: "v0.1.0"}), ExitNewerVersion,
			[]string{newer, "v9.9.9", "v0.1.0"}},
		"garbled stamp": {checkVersion(garbled, stamp{Format: format}), ExitFolder, []string{"cannot be read"}},
		"disk full": {enough("/d", 1<<20, false), ExitDiskFull,
			[]string{"only 1 MiB", "/d", "256 MiB", "free some space"}},
		"disk quite full": {enough("/d", 1<<20, true), ExitDiskFull,
			[]string{"only 1 MiB", "/d", "at least 4 MiB", "free some space"}},
		"folder is file": {makeFolder(file), ExitFolder, []string{file}},
		"port taken": {checkPort("127.0.0.1", port, "--secure-port"), ExitPortTaken,
			[]string{fmt.Sprintf("port %d", port), "server.test (pid", "--secure-port"}},
		"odd address": {checkPort("192.0.2.1", 65000, "--secure-port"), ExitPortTaken, []string{"192.0.2.1:65000"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var r *Refusal
			if !errors.As(c.err, &r) || r.Code != c.code {
				t.Fatalf("got %T %v", c.err, c.err)
			}
			for _, w := range c.want {
				if !strings.Contains(r.Error(), w) {
					t.Errorf("%q does not name %q", r, w)
				}
			}
		})
	}
}

func TestFolderOfTheSameOrOlderFormatIsTaken(t *testing.T) {
	dir := t.TempDir()
	for _, s := range []stamp{{Format: 1, Wherry: "a"}, {Format: 1, Wherry: "b"}, {Format: 2, Wherry: "c"}} {
		if err := checkVersion(dir, s); err != nil {
			t.Fatal(err)
		}
		if got, err := readStamp(filepath.Join(dir, "version")); err != nil || got != s {
			t.Errorf("stamped %+v, %v; want %+v", got, err, s)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestOptions(t *testing.T) {
	if _, err := New(Defaults(), nil); err != nil {
		t.Fatalf("the defaults are refused: %v", err)
	}
	cases := map[string]struct {
		edit func(*Options)
		want string
	}{
		"root folder": {func(o *Options) { o.DataDir = "/" }, "--data-dir"},
		"address": {func(o *Options) { o.BindAddress = "localhost" },
			`--bind-address: "localhost" is not an IP address`},
		"port":        {func(o *Options) { o.SecurePort = 70000 }, "--secure-port: 70000"},
		"same ports":  {func(o *Options) { o.KubeletPort = o.SecurePort }, "must differ"},
		"node name":   {func(o *Options) { o.NodeName = "My_Node" }, "--node-name"},
		"node ip":     {func(o *Options) { o.NodeIPs = []string{"x"} }, "--node-ip"},
		"pod network": {func(o *Options) { o.PodCIDRs = []string{"10.0.0.1/24"} }, "write 10.0.0.0/24"},
		"two networks": {func(o *Options) { o.PodCIDRs = []string{"10.0.0.0/24", "10.1.0.0/24"} },
			"one IPv4 and one IPv6"},
		"small network": {func(o *Options) { o.PodCIDRs = []string{"10.0.0.0/31"} }, "too small"},
		"bridge":        {func(o *Options) { o.BridgeName = "much-too-long-a-name" }, "--bridge-name"},
		"etcd scheme":   {func(o *Options) { o.EtcdServers = []string{"127.0.0.1:2379"} }, "http://"},
		"etcd alone":    {func(o *Options) { o.EtcdCAFile = "/x" }, "use it with --etcd-servers"},
		"etcd half": {func(o *Options) { o.EtcdServers = []string{"https://e:1"}; o.EtcdCertFile = os.Args[0] },
			"belong together"},
		"missing file": {func(o *Options) { o.TokenAuthFile = "/no/such" }, "--token-auth-file"},
		"foreign runtime": {func(o *Options) { o.RuntimeEndpoint = "unix:///x"; o.PodCIDRs = []string{"10.9.0.0/24"} },
			"are for the embedded runtime"},
		"half a cert": {func(o *Options) { o.CertFile = "x" },
			"--tls-cert-file and --tls-private-key-file belong together"},
		"cgroup driver": {func(o *Options) { o.CgroupDriver = "x" }, "--cgroup-driver"},
		"unsafe sysctls": {func(o *Options) { o.UnsafeSysctls = []string{"vm.swappiness"} },
			"--allowed-unsafe-sysctls"},
		"service networks": {func(o *Options) { o.ServiceCIDR = "x" }, "--service-cidr"},
		"proxy health":     {func(o *Options) { o.ProxyHealthz = "localhost:10256" }, "use for example 127.0.0.1:10256"},
		"proxy metrics":    {func(o *Options) { o.ProxyMetrics = "127.0.0.1:0" }, "--proxy-metrics-address"},
		"health of another's proxy": {func(o *Options) { o.ProxyHealthz, o.ServiceProxy = "0.0.0.0:10256", ProxyNone },
			"--service-proxy=none turns off"},
		"metrics without our runtime": {func(o *Options) { o.ProxyMetrics, o.RuntimeEndpoint = "127.0.0.1:10249", "unix:///x" },
			"does not run with --container-runtime-endpoint"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := Defaults()
			c.edit(&o)
			if _, err := New(o, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestLogDirs(t *testing.T) {
	if pods, links := LogDirs(DefaultDataDir); pods != "/var/log/pods" || links != "/var/log/containers" {
		t.Errorf("default: %s, %s", pods, links)
	}
	if pods, links := LogDirs("/d"); pods != "/d/log/pods" || links != "/d/log/containers" {
		t.Errorf("own: %s, %s", pods, links)
	}
}

func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	manager, err := takeNotifier()
	if err != nil {
		t.Fatal(err)
	}
	if left, ok := os.LookupEnv("NOTIFY_SOCKET"); ok {
		t.Errorf("NOTIFY_SOCKET=%s is left for the API library and the containers", left)
	}
	if err := manager.send("READY=1"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	n, err := l.Read(buf)
	if err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
}

// The proxy carries unary calls, streams and errors of any service.
func TestCRIProxy(t *testing.T) {
	defer leaktest.None(t, goleak.IgnoreCurrent()) // the library never ends its check of the log
	dir := t.TempDir()
	behind := grpc.NewServer()
	state := health.NewServer()
	healthpb.RegisterHealthServer(behind, state)
	backend := listenUnix(t, filepath.Join(dir, "behind"))
	go behind.Serve(backend)
	defer behind.Stop()
	inner := dialUnix(t, backend.Addr().String())
	defer inner.Close()

	front := listenUnix(t, filepath.Join(dir, "front"))
	failed := make(chan error, 1)
	b := spawn("proxy", failed, newCRIProxy(front, inner).run)
	outer := dialUnix(t, front.Addr().String())
	defer outer.Close()
	client := healthpb.NewHealthClient(outer)

	if r, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil ||
		r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("check: %v, %v", r, err)
	}
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "none"}); err == nil ||
		!strings.Contains(err.Error(), "unknown service") {
		t.Errorf("an error crossed as %v", err)
	}
	watch, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []healthpb.HealthCheckResponse_ServingStatus
	for range 2 {
		r, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Status)
		state.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	}
	if !slices.Equal(got, []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING,
		healthpb.HealthCheckResponse_NOT_SERVING}) {
		t.Errorf("watched %v", got)
	}
	if err := b.stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func listenUnix(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func dialUnix(t *testing.T, path string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
