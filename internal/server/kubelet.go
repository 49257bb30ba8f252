// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/node"
	"github.com/wherryproject/wherry/internal/node/systemlogs"
)

// KubeletOptions are flags and fields of the kubelet's configuration that are about this node alone, with its meanings.
type KubeletOptions struct {
	ReadOnlyPort   int    // 0: there is none
	SystemLogQuery bool   // whether /logs/?query= is answered
	LogMaxSize     string // a quantity: bytes of a container's log before it is rotated
	LogMaxFiles    int
}

func defaultKubelet() KubeletOptions { return KubeletOptions{LogMaxSize: "10Mi", LogMaxFiles: 5} }

// validateKubelet says all that is wrong with them.
func (o Options) validateKubelet(fail func(format string, args ...any)) {
	k := o.Kubelet
	if k.ReadOnlyPort < 0 || k.ReadOnlyPort > 65535 {
		fail("--read-only-port: %d is not a port; 0 for none", k.ReadOnlyPort)
	}
	if p := k.ReadOnlyPort; p != 0 && (p == o.KubeletPort || p == o.SecurePort) {
		fail("--read-only-port: %d is the port of another API of this server", p)
	}
	if size, err := resource.ParseQuantity(k.LogMaxSize); err != nil || size.Value() <= 0 {
		fail("--container-log-max-size: %q is no size above 0, for example 10Mi", k.LogMaxSize)
	}
	if k.LogMaxFiles < 2 {
		fail("--container-log-max-files: %d must be 2 or more: one is written, the others are what was rotated",
			k.LogMaxFiles)
	}
}

// kubelet puts them into an agent's configuration.
func (o Options) kubelet(c *node.Config) error {
	k := o.Kubelet
	size, err := resource.ParseQuantity(k.LogMaxSize)
	if err != nil {
		return fmt.Errorf("--container-log-max-size: %w", err)
	}
	c.LogMaxSize, c.LogMaxFiles = size.Value(), k.LogMaxFiles
	c.SystemLogs = k.systemLogs()
	if k.ReadOnlyPort == 0 {
		return nil
	}
	if c.ReadOnly, err = net.Listen("tcp", net.JoinHostPort(o.KubeletAddress,
		strconv.Itoa(k.ReadOnlyPort))); err != nil {
		return fmt.Errorf("--read-only-port: %w", err)
	}
	return nil
}

func (k KubeletOptions) systemLogs() http.Handler {
	if !k.SystemLogQuery {
		return nil
	}
	return systemlogs.Handler{Folder: "/var/log", Journal: "journalctl"}
}
