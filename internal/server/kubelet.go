// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/node"
	"github.com/wherryproject/wherry/internal/node/numa"
	"github.com/wherryproject/wherry/internal/node/shutdown"
	"github.com/wherryproject/wherry/internal/node/systemlogs"
	"github.com/wherryproject/wherry/internal/quantities"
)

// KubeletOptions are flags and fields of the kubelet's configuration that are about this node alone, with its meanings.
type KubeletOptions struct {
	// Dir is where programs on the node look for a kubelet's sockets; "": see [Options.kubeletDir].
	Dir             string
	CPUPolicy       string            // none or static
	CPUOptions      map[string]string // of the policy static, by the kubelet's names
	ReservedCPUs    string            // a list such as 0-1
	MemoryPolicy    string            // None or Static
	ReservedMemory  []string          // such as 0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=1Gi
	TopologyPolicy  string            // one of numa.Policies
	TopologyScope   string            // container or pod
	TopologyOptions map[string]string // by the kubelet's names
	ReadOnlyPort    int               // 0: there is none
	SystemLogQuery  bool              // whether /logs/?query= is answered
	LogMaxSize      string            // a quantity: bytes of a container's log before it is rotated
	LogMaxFiles     int
	SwapBehavior    string // NoSwap or LimitedSwap
	// NodeLabels and RegisterWithTaints are what the node is registered with: KEY=VALUE and KEY=VALUE:EFFECT.
	NodeLabels, RegisterWithTaints []string

	// How long pods have to end when the machine goes down: all of it, the critical ones' part, or by priority as
	// PRIORITY=SECONDS. 0 and none: they are not ended.
	ShutdownGrace, ShutdownGraceCritical time.Duration
	ShutdownByPriority                   []string
}

// How pods may use swap, in the kubelet's words.
const (
	NoSwap      = "NoSwap"
	LimitedSwap = "LimitedSwap"
)

// Policies of the CPU manager, in the kubelet's words.
const (
	CPUPolicyNone   = "none"
	CPUPolicyStatic = "static"
)

func defaultKubelet() KubeletOptions {
	return KubeletOptions{CPUPolicy: CPUPolicyNone, MemoryPolicy: MemoryPolicyNone, TopologyPolicy: string(numa.None),
		TopologyScope: ScopeContainer, LogMaxSize: "10Mi", LogMaxFiles: 5, SwapBehavior: NoSwap}
}

// validateKubelet says all that is wrong with them.
func (o Options) validateKubelet(fail func(format string, args ...any)) {
	k := o.Kubelet
	if k.ReadOnlyPort < 0 || k.ReadOnlyPort > 65535 {
		fail("--read-only-port: %d is not a port; 0 for none", k.ReadOnlyPort)
	}
	if p := k.ReadOnlyPort; p != 0 && (p == o.KubeletPort || p == o.SecurePort) {
		fail("--read-only-port: %d is the port of another API of this server", p)
	}
	if _, err := k.cpus(); err != nil {
		fail("%w", err)
	}
	if _, err := k.placing(); err != nil {
		fail("%w", err)
	}
	if k.Dir != "" && k.Dir != NoKubeletDir && !filepath.IsAbs(k.Dir) {
		fail("--kubelet-dir: %q must be an absolute path, or %s", k.Dir, NoKubeletDir)
	}
	if size, err := quantities.Parse(k.LogMaxSize); err != nil || size.Value() <= 0 {
		fail("--container-log-max-size: %q is not a size above 0, for example 10Mi", k.LogMaxSize)
	}
	if k.SwapBehavior != NoSwap && k.SwapBehavior != LimitedSwap {
		fail("--swap-behavior: %q must be %s or %s", k.SwapBehavior, NoSwap, LimitedSwap)
	}
	if _, err := k.shutdown(); err != nil {
		fail("%w", err)
	}
	if _, err := k.registration(); err != nil {
		fail("%w", err)
	}
	if k.LogMaxFiles < 2 {
		fail("--container-log-max-files: %d must be 2 or more: one is written, the others are what was rotated",
			k.LogMaxFiles)
	}
}

// kubelet puts them into an agent's configuration.
func (o Options) kubelet(c *node.Config) error {
	k := o.Kubelet
	size, err := quantities.Parse(k.LogMaxSize)
	if err != nil {
		return fmt.Errorf("--container-log-max-size: %w", err)
	}
	c.LogMaxSize, c.LogMaxFiles = size.Value(), k.LogMaxFiles
	c.KubeletFolder = o.kubeletDir()
	if c.CPUs, err = k.cpus(); err != nil {
		return err
	}
	if c.Placing, err = k.placing(); err != nil {
		return err
	}
	if c.Registration, err = k.registration(); err != nil {
		return err
	}
	c.SystemLogs, c.LimitedSwap = k.systemLogs(), k.SwapBehavior == LimitedSwap
	if c.Shutdown, err = k.shutdown(); err != nil {
		return err
	}
	if len(c.Shutdown) > 0 {
		c.PowerFails = powerFails()
	}
	return nil
}

// KubeletDir is where a kubelet has its sockets, and where device plug-ins look for them by default.
const KubeletDir = "/var/lib/kubelet"

// NoKubeletDir, as the folder, is for a node without such sockets.
const NoKubeletDir = "none"

// kubeletDir is where this node has them: where everybody looks, if it is the machine's own node, and else, beside
// others, in its data folder; "" for nowhere.
func (o Options) kubeletDir() string {
	switch {
	case o.Kubelet.Dir == NoKubeletDir:
		return ""
	case o.Kubelet.Dir != "":
		return o.Kubelet.Dir
	case o.DataDir == DefaultDataDir:
		return KubeletDir
	}
	return filepath.Join(o.DataDir, "kubelet")
}

func (k KubeletOptions) systemLogs() http.Handler {
	if !k.SystemLogQuery {
		return nil
	}
	return systemlogs.Handler{Folder: "/var/log", Journal: "journalctl"}
}

// shutdown reads the periods of a shutdown.
func (k KubeletOptions) shutdown() ([]shutdown.Period, error) {
	if len(k.ShutdownByPriority) > 0 {
		if k.ShutdownGrace != 0 || k.ShutdownGraceCritical != 0 {
			return nil,
				errors.New("--shutdown-grace-period-by-pod-priority is in place of --shutdown-grace-period and " +
					"--shutdown-grace-period-critical-pods: leave those out")
		}
		periods, err := shutdown.Parse(k.ShutdownByPriority)
		if err != nil {
			return nil, fmt.Errorf("--shutdown-grace-period-by-pod-priority: %w", err)
		}
		return periods, nil
	}
	periods, err := shutdown.Periods(k.ShutdownGrace, k.ShutdownGraceCritical)
	if err != nil {
		return nil, fmt.Errorf("--shutdown-grace-period, --shutdown-grace-period-critical-pods: %w", err)
	}
	return periods, nil
}

// powerFails receives SIGPWR, by which init systems report a power failure, for as long as the process lives.
func powerFails() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGPWR)
	return signals
}

// drain ends this node's pods, or with on false lets others come again.
func (s *Server) drain(ctx context.Context, on bool) error {
	a := s.agent.Load()
	if a == nil {
		return errors.New("the node's agent has not started yet")
	}
	return a.Drain(ctx, on)
}
