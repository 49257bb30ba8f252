// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/klog/v2"
)

// run is what the tests of this process share. Only TestMain writes it; tests use shared, own and world.
var run struct {
	skip   string // why no test can run
	world  *World
	server *Server
}

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	if os.Geteuid() != 0 {
		run.skip = "end-to-end tests make containers; they need root"
		return m.Run(), nil
	}
	// What client-go says of connections that end as a test wants it is of interest only when something fails.
	said := newStream(nil, "klog")
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(said, nil)))
	defer func() {
		if code != 0 || err != nil {
			fmt.Fprint(os.Stderr, said.Text())
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if signal.Ignored(syscall.SIGHUP) { // by nohup; what is tested must hear of it all the same
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if run.world, err = NewWorld(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, run.world.Close()) }()
	// Pods must be able to reach the API, which listens on loopback unless told.
	if run.server, err = NewServer(ctx, run.world, ServerOptions{Args: []string{"--bind-address", "0.0.0.0"}}); err != nil {
		return 1, err
	}
	// Ctrl-C ends this process; the server has a session of its own and must not be left behind.
	purge := sync.OnceValue(func() error { return run.server.Purge(context.Background()) })
	done := context.AfterFunc(ctx, func() { fmt.Fprintln(os.Stderr, "e2e: interrupted:", purge()); os.Exit(130) })
	code = m.Run()
	done()
	if bad := run.server.Complaints(); len(bad) > 0 {
		err = fmt.Errorf("the server logged what it never should:\n%s", strings.Join(bad, "\n"))
	}
	return code, errors.Join(err, purge())
}

// world gives what tests share besides servers, or skips the test.
func world(t testing.TB) *World {
	t.Helper()
	if run.skip != "" {
		t.Skip(run.skip)
	}
	return run.world
}

// shared gives a Space on the server that most tests share. Such a test must leave the server and its node as they are.
func shared(t testing.TB) *Space {
	t.Helper()
	world(t)
	return run.server.Space(t)
}

// own starts a server for one test, which may stop, kill and start it again.
func own(t testing.TB, opts ...ServerOptions) *Server {
	t.Helper()
	w := world(t)
	srv, err := NewServer(context.Background(), w, append(opts, ServerOptions{})[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", srv.LogTail(60))
		}
		if err := srv.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// needBusybox skips a test that cannot do without a shell.
func needBusybox(t testing.TB) {
	t.Helper()
	if err := world(t).NoBusy; err != nil {
		t.Skip(err)
	}
}

// eachKubectl runs a subtest with every kubectl there is: the Kubernetes project's of this version, and the system's.
func eachKubectl(t *testing.T, s *Space, test func(t *testing.T, s *Space)) {
	for _, k := range s.World.Kubectls {
		t.Run(k.Name, func(t *testing.T) { test(t, s.With(t).Using(k)) })
	}
}

// TestImagesAreThere is the first thing to fail when importing does not work: the image list has both images.
func TestImagesAreThere(t *testing.T) {
	s := shared(t)
	out, err := s.Wherry(s.Context(), "image", "ls").CombinedOutput()
	if err != nil {
		t.Fatalf("wherry image ls: %v: %s", err, out)
	}
	r := Result{T: t, Line: "wherry image ls", Out: string(out)}
	r.Has("wherry.test/tool")
	if world(t).NoBusy == nil {
		r.Has("wherry.test/busybox")
	}
}

// TestBuiltInImages: the images that are built into wherry are not in the list unless asked for, and are not removed (PL-03, DC-01).
func TestBuiltInImages(t *testing.T) {
	t.Parallel()
	s := shared(t)
	wherry := func(args ...string) (string, error) {
		out, err := s.Wherry(s.Context(), args...).CombinedOutput()
		return string(out), err
	}
	if out, err := wherry("image", "ls"); err != nil || strings.Contains(out, "wherry.dev/pause") || strings.Contains(out, "wherry.dev/toolbox") {
		t.Errorf("wherry image ls: %v: %s", err, out)
	}
	out, err := wherry("image", "ls", "--all")
	if err != nil || !strings.Contains(out, "wherry.dev/toolbox") {
		t.Errorf("wherry image ls --all: %v: %s", err, out)
	}
	pause := regexp.MustCompile(`wherry\.dev/pause:\w+ +(\w+)`).FindStringSubmatch(out)
	if pause == nil {
		t.Fatalf("no pause image: %s", out)
	}
	for _, ref := range []string{pause[1], "wherry.dev/toolbox"} {
		if out, err := wherry("image", "rm", "--force", ref); err == nil || !strings.Contains(out, "is built into wherry") {
			t.Errorf("wherry image rm --force %s: %v: %s", ref, err, out)
		}
	}
}
