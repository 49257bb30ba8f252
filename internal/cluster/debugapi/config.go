// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/options"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// Config says what a server serves, where, and what things are called in its cluster. Nothing has a default but what
// [Defaults] gives.
type Config struct {
	Cluster   *rest.Config // how kube-apiserver is reached
	Namespace string       // the API's own

	Service       string // by whose name kube-apiserver reaches it
	CASecret      string
	APIService    string
	AgentAccount  string // service account of the agents
	AgentSelector string // labels of the agents' pods
	AgentPort     int

	BindAddress string // empty: all addresses of this machine
	Port        int    // 0: any free one

	Limits options.Limits
	Logger *slog.Logger
}

// Defaults are what things are called that are installed as the manifest says.
func Defaults() Config {
	return Config{
		Service: "wherry-debug-api", CASecret: "wherry-debug-ca", APIService: wire.Version + "." + wire.Group,
		AgentAccount: "wherry-debug-agent", AgentSelector: "app.kubernetes.io/name=wherry-debug-agent",
		AgentPort: wire.AgentPort, Port: 8443, Limits: options.DefaultLimits(), Logger: slog.New(slog.DiscardHandler),
	}
}

// validate says all that is wrong.
func (c Config) validate() error {
	var errs []error
	for name, value := range map[string]string{"namespace": c.Namespace, "service": c.Service, "CA secret": c.CASecret,
		"APIService": c.APIService, "agents' service account": c.AgentAccount, "agents' labels": c.AgentSelector} {
		if value == "" {
			errs = append(errs, fmt.Errorf("%s: none given", name))
		}
	}
	if _, err := labels.Parse(c.AgentSelector); err != nil {
		errs = append(errs, fmt.Errorf("agents' labels: %w", err))
	}
	if c.BindAddress != "" && net.ParseIP(c.BindAddress) == nil {
		errs = append(errs, fmt.Errorf("bind address %q: not an IP address", c.BindAddress))
	}
	if c.Port < 0 || c.Port > 65535 {
		errs = append(errs, fmt.Errorf("port %d: not between 0 and 65535", c.Port))
	}
	if c.AgentPort < 1 || c.AgentPort > 65535 {
		errs = append(errs, fmt.Errorf("agents' port %d: not between 1 and 65535", c.AgentPort))
	}
	if c.Cluster == nil {
		errs = append(errs, errors.New("no way to kube-apiserver is given"))
	}
	if c.Logger == nil {
		errs = append(errs, errors.New("no log is given"))
	}
	return errors.Join(append(errs, c.Limits.Validate())...)
}

// serviceNames are by which kube-apiserver knows the API.
func (c Config) serviceNames() []string {
	return []string{c.Service + "." + c.Namespace + ".svc", c.Service + "." + c.Namespace}
}
