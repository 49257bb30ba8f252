// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
)

// startTimeout bounds a server's start. It is generous: it says "never", not "slow".
const startTimeout = 60 * time.Second

// throughFullDisks is a flag of servers whose pods live for minutes: what else fills the machine's disk is no reason to
// evict them.
const throughFullDisks = "--eviction-hard=memory.available<100Mi,nodefs.available<1%,imagefs.available<1%"

// ServerOptions change how a server is run.
type ServerOptions struct {
	Args     []string // further flags of `wherry server`
	Env      []string // further environment
	NoImages bool     // do not import the tests' images
	Files    int      // limit of open files; 0: that of the tests
	Disk     string   // size of a disk of the data folder's own, as mount has it: 1200m; empty: it is on the machine's

	Runtime *Containerd // whose containers they are; nil: the embedded runtime's
	Unready bool        // its node is not ready by itself
	Apart   bool        // its clock is another than the tests', which therefore do not judge its certificate
}

// Server is one `wherry server` process on a data folder of its own.
type Server struct {
	World      *World
	DataDir    string
	Kubeconfig string
	Config     *rest.Config         // an administrator's
	Client     kubernetes.Interface // made from Config
	NodeName   string
	NodeIP     string

	opts  ServerOptions
	enter []string // the command that leads to the machine it is on; empty: this one
	base  string   // folder of all that a server has on the machine beside its data folder
	home  string   // HOME of the kubectls: their discovery cache is per server
	log   string   // the server's output, of all its starts
	cmd   *exec.Cmd
	done  chan struct{} // closed when cmd has ended
	err   error         // how it ended; read after done
	made  footprint     // when it was last looked for
}

// NewServer makes a data folder and starts a server on it, with the images imported. The caller ends it with Purge.
func NewServer(ctx context.Context, w *World, opts ServerOptions) (*Server, error) {
	s, err := UnstartedServer(w, opts)
	if err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.Purge(ctx))
	}
	if err := s.importImages(ctx); err != nil {
		return nil, errors.Join(err, s.Purge(ctx))
	}
	return s, nil
}

// UnstartedServer is a server whose data folder does not exist yet: its first start, which has no images, is the
// caller's, and so is Purge.
func UnstartedServer(w *World, opts ServerOptions) (*Server, error) {
	dir, err := os.MkdirTemp("", serverPrefix)
	if err != nil {
		return nil, err
	}
	s := &Server{World: w, DataDir: filepath.Join(dir, "d"), opts: opts, base: dir, home: filepath.Join(dir, "home"),
		log: filepath.Join(dir, "server.log")}
	// open for passing through, as the folders above a data folder are, for pods with users of their own
	if err := errors.Join(os.Chmod(dir, 0o711), os.Mkdir(s.home, 0o755),
		writePID(dir, ownerFile, os.Getpid())); err != nil {
		return nil, err
	}
	if opts.Disk != "" {
		disk := filepath.Join(dir, diskFolder)
		if err := errors.Join(os.Mkdir(disk, 0o755), unix.Mount("tmpfs", disk, "tmpfs", 0,
			"size="+opts.Disk)); err != nil {
			return nil, err
		}
		s.DataDir = filepath.Join(disk, "d")
	}
	if opts.Runtime != nil {
		s.opts.NoImages, s.opts.Args = true, append(opts.Runtime.Flags(), opts.Args...)
	}
	s.Kubeconfig = filepath.Join(s.DataDir, "kubeconfig")
	return s, nil
}

// Start starts the server process (again) and returns when it is ready: it has told so, /readyz says so, the node is
// Ready.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ready, err := listenNotify(filepath.Join(s.base, "notify"))
	if err != nil {
		return err
	}
	defer ready.Close()
	if err := s.spawn(ready.LocalAddr().String()); err != nil {
		return err
	}
	if err := s.awaitNotify(ctx, ready); err != nil {
		return fmt.Errorf("%w; the end of its log:\n%s", err, s.LogTail(40))
	}
	if err := s.connect(); err != nil {
		return err
	}
	if err := s.checkReady(ctx); err != nil {
		return err
	}
	return s.awaitNode(ctx)
}

// checkReady asks a server that has said it is ready. The answer "no" counts if it is given thrice: etcd gets two
// seconds for its part of it, which is little on a machine with much else to do.
func (s *Server) checkReady(ctx context.Context) error {
	for tries := 1; ; tries++ {
		text, err := s.Client.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			return nil
		}
		if tries == 3 || ctx.Err() != nil {
			return fmt.Errorf("/readyz after the server said it is ready: %w: %s", err, text)
		}
	}
}

func (s *Server) spawn(notify string) error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{"server", "--data-dir", s.DataDir, "--secure-port", "0", "--kubelet-port", "0"},
		s.opts.Args...)
	s.cmd = exec.Command(s.World.Wherry, args...)
	if s.opts.Files > 0 {
		s.cmd = exec.Command("sh", append([]string{"-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(s.opts.Files),
			s.World.Wherry}, args...)...)
	}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Env = append(append(os.Environ(), "NOTIFY_SOCKET="+notify), s.opts.Env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C at the tests is not for the server
	if err := s.cmd.Start(); err != nil {
		return err
	}
	if err := writePID(s.base, serverFile, s.PID()); err != nil {
		return errors.Join(err, s.cmd.Process.Kill())
	}
	done := make(chan struct{})
	s.done = done
	go func() { s.err = s.cmd.Wait(); close(done) }()
	return nil
}

// listenNotify plays the service manager, which a server tells when it is ready (sd_notify(3)): an event to wait for.
func listenNotify(path string) (*net.UnixConn, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
}

func (s *Server) awaitNotify(ctx context.Context, conn *net.UnixConn) error {
	told := make(chan error, 1)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil || strings.Contains(string(buf[:n]), "READY=1") {
				told <- err
				return
			}
		}
	}()
	select {
	case err := <-told:
		return err
	case <-s.done:
		return fmt.Errorf("the server ended before it was ready: %w", s.err)
	case <-ctx.Done():
		return fmt.Errorf("the server is not ready after %s", startTimeout)
	}
}

func (s *Server) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	if s.opts.Apart {
		config.Insecure, config.CAFile, config.CAData = true, "", nil
	}
	s.Config = config
	s.Client, err = kubernetes.NewForConfig(config)
	return err
}

func (s *Server) awaitNode(ctx context.Context) error {
	lw := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "nodes", "", fields.Everything())
	_, err := watchtools.UntilWithSync(ctx, lw, &corev1.Node{}, nil, func(e watch.Event) (bool, error) {
		node, ok := e.Object.(*corev1.Node)
		if !ok {
			return false, nil
		}
		s.NodeName = node.Name
		for _, a := range node.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				s.NodeIP = a.Address
			}
		}
		for _, c := range node.Status.Conditions {
			if s.opts.Unready && c.Type == corev1.NodeReady {
				return true, nil
			}
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the node to be Ready: %w; the end of the server's log:\n%s", err, s.LogTail(40))
	}
	return nil
}

func (s *Server) importImages(ctx context.Context) error {
	if s.opts.NoImages {
		return nil
	}
	archives, err := s.World.Archives()
	if err != nil {
		return err
	}
	out, err := s.Wherry(ctx, append([]string{"image", "import", "--data-dir", s.DataDir},
		archives...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("import images: %w: %s", err, out)
	}
	return nil
}

// Wherry is the command `wherry ARGS`, with this server's data folder as the default one.
func (s *Server) Wherry(ctx context.Context, args ...string) *exec.Cmd {
	command := append(slices.Clone(s.enter), s.World.Wherry)
	cmd := exec.CommandContext(ctx, command[0], append(command[1:], args...)...)
	cmd.Env = append(append(os.Environ(), "HOME="+s.home, "WHERRY_DATA_DIR="+s.DataDir), s.opts.Env...)
	return cmd
}

// Setenv replaces the further environment that the server has from its next start on.
func (s *Server) Setenv(env ...string) { s.opts.Env = env }

// PID is the server process'.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Done is closed when the server process has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop ends the server as a service manager does, by SIGTERM. Pods go on running.
func (s *Server) Stop() error {
	select {
	case <-s.done:
		return nil // before
	default:
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.done:
	case <-time.After(startTimeout):
		s.Kill()
		return fmt.Errorf("the server did not end on SIGTERM; the end of its log:\n%s", s.LogTail(40))
	}
	if s.err != nil {
		return fmt.Errorf("the server ended badly on SIGTERM: %w; the end of its log:\n%s", s.err, s.LogTail(40))
	}
	return nil
}

// Kill ends the server by SIGKILL and waits until it is gone. Pods go on running.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // an error says that it has ended
	<-s.done
}

// Purge stops the server, removes all it made (`wherry purge`), and reports what is left on the machine all the same.
func (s *Server) Purge(ctx context.Context) error {
	var errs []error
	if s.cmd != nil {
		errs = append(errs, s.Stop())
	}
	footprint, err := s.footprint()
	errs = append(errs, err)
	if out, err := s.Wherry(ctx, "purge", "--data-dir", s.DataDir, "--yes").CombinedOutput(); err != nil {
		errs = append(errs, fmt.Errorf("wherry purge: %w: %s", err, out))
	}
	left, err := footprint.left()
	errs = append(errs, err)
	if len(left) > 0 {
		errs = append(errs, fmt.Errorf("left on the machine after wherry purge:\n  %s", strings.Join(left, "\n  ")))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w\n(the server's log is kept: %s)", err, s.log)
	}
	if s.opts.Disk != "" {
		if err := unix.Unmount(filepath.Dir(s.DataDir), unix.MNT_DETACH); err != nil {
			return err
		}
	}
	return os.RemoveAll(s.base)
}

// Log is all that the server has logged so far.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// LogTail is the end of the server's log, without etcd's complaints about slow disks, and without the ends of long
// lines.
func (s *Server) LogTail(lines int) string {
	var all []string
	for line := range strings.SplitSeq(strings.TrimRight(s.Log(), "\n"), "\n") {
		if !strings.Contains(line, "component=etcd") {
			all = append(all, line[:min(len(line), 500)])
		}
	}
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Complaints are the lines of the server's log that a healthy server does not write.
func (s *Server) Complaints() []string {
	var out []string
	for line := range strings.SplitSeq(s.Log(), "\n") {
		for _, bad := range []string{"panic:", "fatal error:", "DATA RACE", "Observed a panic"} {
			if strings.Contains(line, bad) {
				out = append(out, line)
				break
			}
		}
	}
	return out
}
