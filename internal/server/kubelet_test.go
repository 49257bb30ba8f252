// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/node"
)

// TestKubeletOptions proves PL-36: what is about the node alone has the kubelet's defaults, and is refused by name where
// it makes no sense.
func TestKubeletOptions(t *testing.T) {
	var c node.Config
	if err := Defaults().kubelet(&c); err != nil || c.LogMaxSize != 10<<20 || c.LogMaxFiles != 5 || c.ReadOnly != nil || c.SystemLogs != nil {
		t.Errorf("%+v, %v", c, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	o := Defaults()
	o.KubeletAddress, o.KubeletPort = "127.0.0.1", 0
	o.Kubelet.ReadOnlyPort, _ = strconv.Atoi(taken)
	if err := o.openPorts(&c); err == nil || !strings.HasPrefix(err.Error(), "--read-only-port: ") {
		t.Error(err)
	}
	l.Close()
	o.Kubelet.SystemLogQuery = true
	if err := errors.Join(o.kubelet(&c), o.openPorts(&c)); err != nil || c.ReadOnly == nil || c.SystemLogs == nil {
		t.Errorf("%+v, %v", c, err)
	} else {
		c.ReadOnly.Close()
		c.Listener.Close()
	}
	for want, change := range map[string]func(*KubeletOptions){
		"--read-only-port: 70000 is not a port":                                    func(k *KubeletOptions) { k.ReadOnlyPort = 70000 },
		"--read-only-port: 10250 is the port of another":                           func(k *KubeletOptions) { k.ReadOnlyPort = 10250 },
		"--container-log-max-size: \"x\" is not a size":                            func(k *KubeletOptions) { k.LogMaxSize = "x" },
		"--container-log-max-size: \"0\" is not a size":                            func(k *KubeletOptions) { k.LogMaxSize = "0" },
		"--shutdown-grace-period, --shutdown-grace-period-critical-pods: critical": func(k *KubeletOptions) { k.ShutdownGraceCritical = time.Second },
		"--shutdown-grace-period-by-pod-priority: \"x\" must be":                   func(k *KubeletOptions) { k.ShutdownByPriority = []string{"x"} },
		"--shutdown-grace-period-by-pod-priority is in place":                      func(k *KubeletOptions) { k.ShutdownByPriority, k.ShutdownGrace = []string{"1=1"}, time.Second },
		"--swap-behavior: \"Much\" must be":                                        func(k *KubeletOptions) { k.SwapBehavior = "Much" },
		"--container-log-max-files: 1 must be 2 or more":                           func(k *KubeletOptions) { k.LogMaxFiles = 1 },
	} {
		o := Defaults()
		change(&o.Kubelet)
		if _, err := o.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
}
