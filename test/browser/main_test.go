// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"
	"k8s.io/klog/v2"

	"github.com/wherryproject/wherry/test/e2e"
)

// run is what the tests of this process share. Only TestMain writes it; tests use space, own and open.
var run struct {
	skip    string // why no test can run
	world   *e2e.World
	server  *e2e.Server
	browser context.Context // of the one Chromium, in which each test has a profile of its own
}

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		run.skip = "chromium is not installed (Debian's package chromium): the page is not tested in a browser"
	}
	if os.Geteuid() != 0 {
		run.skip = "the tests in a browser make containers; they need root"
	}
	if run.skip != "" {
		fmt.Fprintln(os.Stderr, "browser: skipped:", run.skip)
		return m.Run(), nil
	}
	// client-go tells of connections that end as a test wants it.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// The harness finds the binary and builds its programs in the main module.
	if err := os.Chdir("../e2e"); err != nil {
		return 1, err
	}
	ctx := context.Background()
	if run.world, err = e2e.NewWorld(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, run.world.Close()) }()
	if run.world.NoBusy != nil {
		return 1, run.world.NoBusy
	}
	if run.server, err = e2e.NewServer(ctx, run.world, e2e.ServerOptions{Args: []string{"--ui"}}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, run.server.Purge(ctx)) }()
	end, err := launch(chromium)
	if err != nil {
		return 1, err
	}
	defer end()
	return m.Run(), nil
}

// launch starts Chromium. As root it has no sandbox of its own; all it is shown is this machine's.
func launch(chromium string) (end func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox,
		// The server's own certificate is no public authority's: that it is the right one, other tests show.
		chromedp.IgnoreCertErrors)
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	browser, endBrowser := chromedp.NewContext(allocator)
	end = func() { endBrowser(); endAllocator() }
	if err := chromedp.Do(browser); err != nil {
		end()
		return nil, fmt.Errorf("start %s: %w", chromium, err)
	}
	run.browser = browser
	return end, nil
}

// space is a namespace for a test on the server that tests share.
func space(t *testing.T) *e2e.Space {
	t.Helper()
	if run.skip != "" {
		t.Skip(run.skip)
	}
	return run.server.Space(t)
}

// own is a server for one test, which may kill it.
func own(t *testing.T, args ...string) *e2e.Server {
	t.Helper()
	if run.skip != "" {
		t.Skip(run.skip)
	}
	srv, err := e2e.NewServer(t.Context(), run.world, e2e.ServerOptions{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return srv
}
