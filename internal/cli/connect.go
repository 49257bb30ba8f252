// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/podrun"
	"github.com/wherryproject/wherry/internal/cli/pulling"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/server"
)

// patience is how long a server that is starting is waited for.
const patience = 60 * time.Second

// connect finds the server for a run: the one that --kubeconfig, --data-dir or KUBECONFIG names, in this order, else
// this machine's, else one brought up for the run.
func (f *runFlags) connect(ctx context.Context, screen *podrun.Screen,
	interrupts <-chan os.Signal) (*connection, error) {
	variable := os.Getenv("KUBECONFIG")
	if f.dataDirGiven {
		variable = ""
	}
	if err := reach.CheckKubeconfig(f.kubeconfig, variable); err != nil {
		return nil, err
	}
	path := cmp.Or(f.kubeconfig, variable)
	dir, err := filepath.Abs(f.dataDir)
	if err != nil {
		return nil, err
	}
	switch {
	case path != "":
	case server.Locked(dir):
		if path, err = awaitKubeconfig(ctx, dir); err != nil {
			return nil, err
		}
	default:
		return f.bringUp(ctx, dir, screen, interrupts)
	}
	client, config, err := clientOf(path, func(away bool) {
		if away {
			screen.Announce("the server does not respond; waiting for it")
		} else {
			screen.Announce("the server responds again")
		}
	})
	if err != nil {
		return nil, err
	}
	if err := awaitReady(ctx, client, func() bool { return server.Locked(dir) }); err != nil {
		return nil, fmt.Errorf("the server in %s does not respond: %w", path, err)
	}
	c := &connection{client: client, config: config, close: func() error { return nil }}
	if path == datadir.Kubeconfig(dir) {
		c.transfers = pulling.Node(datadir.Socket(dir))
	}
	return c, nil
}

// bringUp starts a server in this process. Its ports are the usual ones where they are free, so that kubectl elsewhere
// finds it.
func (f *runFlags) bringUp(ctx context.Context, dir string, screen *podrun.Screen,
	interrupts <-chan os.Signal) (*connection, error) {
	if f.options.Detach {
		return nil,
			fmt.Errorf("--detach needs a server that keeps running, and none is running on %s: start one with %s", dir,
				f.startCommand())
	}
	opts := server.Defaults()
	opts.DataDir = dir
	opts.Inspector = cmdline.Inspector()
	opts.SecurePort = freeOr0(opts.SecurePort)
	opts.KubeletPort = freeOr0(opts.KubeletPort)
	file := &lazyFile{path: filepath.Join(dir, "server.log")}
	log, err := f.logs.Logger(file)
	if err != nil {
		return nil, err
	}
	s, err := server.New(opts, log)
	if err != nil {
		return nil, err
	}
	screen.Announce("no server is running; starting one in %s for this run", dir)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop := func() error {
		cancel()
		return errors.Join(<-ended, file.Close())
	}
	select {
	case <-s.Ready():
	case err := <-ended:
		cancel()
		if err == nil {
			err = errors.New("the server exited during startup")
		}
		return nil, errors.Join(err, file.Close())
	case <-interrupts:
		return nil, errors.Join(stop(), errors.New("interrupted while the server was starting"))
	}
	client, config, err := clientOf(datadir.Kubeconfig(dir), func(bool) {}) // it ends with this process
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	screen.Say("server is running")
	return &connection{client: client, config: config, own: true, transfers: pulling.Node(datadir.Socket(dir)),
		close: stop}, nil
}

// startCommand is the command that starts a server which the run finds. The folder is the one that was typed where its
// full name is not to be had.
func (f *runFlags) startCommand() string {
	dir, err := filepath.Abs(f.dataDir)
	if err != nil {
		dir = f.dataDir
	}
	return reach.StartCommand(dir)
}

// freeOr0 is port if nobody listens on it, else 0: any free one.
func freeOr0(port int) int {
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return 0
	}
	l.Close()
	return port
}

// clientOf is a client by a kubeconfig. heard is called when the server goes away, and when it comes back.
func clientOf(kubeconfig string, heard func(away bool)) (kubernetes.Interface, *rest.Config, error) {
	if f, err := os.Open(kubeconfig); err == nil {
		f.Close()
	} else if errors.Is(err, os.ErrPermission) { // client-go puts it into a text
		return nil, nil, reach.OnlyRoot(kubeconfig)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, nil).ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	config.QPS, config.Burst = -1, 0 // one person's requests need no limit
	reach.Source{}.Guard(config)
	reach.Heard(config, heard)
	client, err := kubernetes.NewForConfig(config)
	return client, config, err
}

// awaitKubeconfig waits for a server that holds the folder but has not written its kubeconfig yet.
func awaitKubeconfig(ctx context.Context, dir string) (string, error) {
	path := datadir.Kubeconfig(dir)
	err := retry(ctx, func() error { _, err := os.Stat(path); return err })
	if err != nil {
		return "", fmt.Errorf("the server in %s has written no kubeconfig: %w", dir, err)
	}
	return path, nil
}

// awaitReady waits until the API says that it is ready. Where nobody listens it waits only if a server is starting.
func awaitReady(ctx context.Context, client kubernetes.Interface, starting func() bool) error {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	return retry(ctx, func() error {
		err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		if errors.Is(err, syscall.ECONNREFUSED) && !starting() {
			giveUp()
		}
		return err
	})
}

func retry(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// lazyFile is opened for appending at the first write: the folder is the server's to make.
type lazyFile struct {
	path string
	mu   sync.Mutex
	file *os.File
}

func (l *lazyFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return 0, err
		}
		l.file = f
	}
	return l.file.Write(p)
}

func (l *lazyFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
